package io.github.fencelock;

import java.util.Map;

/** The client was closed; connect again. */
public final class ClosedException extends FencelockException {
    private static final long serialVersionUID = 1;

    ClosedException(String message, boolean retryable, Map<String, String> fields) {
        super(Code.CLOSED, message, retryable, fields);
    }
}
