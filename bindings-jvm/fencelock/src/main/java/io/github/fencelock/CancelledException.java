package io.github.fencelock;

import java.util.Map;

/** The caller gave the operation up, or a later request replaced it. */
public final class CancelledException extends FencelockException {
    private static final long serialVersionUID = 1;

    CancelledException(String message, boolean retryable, Map<String, String> fields) {
        super(Code.CANCELLED, message, retryable, fields);
    }
}
