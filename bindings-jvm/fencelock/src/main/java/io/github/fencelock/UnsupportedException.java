package io.github.fencelock;

import java.util.Map;

/** This store, dialect or platform cannot do what was asked. */
public final class UnsupportedException extends FencelockException {
    private static final long serialVersionUID = 1;

    UnsupportedException(String message, boolean retryable, Map<String, String> fields) {
        super(Code.UNSUPPORTED, message, retryable, fields);
    }
}
