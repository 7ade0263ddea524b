package io.github.fencelock;

import java.util.Map;

/** A defect of fencelock itself; please report it. */
public final class InternalException extends FencelockException {
    private static final long serialVersionUID = 1;

    InternalException(String message, boolean retryable, Map<String, String> fields) {
        super(Code.INTERNAL, message, retryable, fields);
    }

    /** The natives throw this for a panic. */
    InternalException(String message) {
        this(message, false, Map.of());
    }
}
