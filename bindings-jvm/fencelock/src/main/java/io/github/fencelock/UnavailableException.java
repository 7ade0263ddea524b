package io.github.fencelock;

import java.util.Map;

/** The store could not be reached or could not answer; nothing is held. */
public final class UnavailableException extends FencelockException {
    private static final long serialVersionUID = 1;

    UnavailableException(String message, boolean retryable, Map<String, String> fields) {
        super(Code.UNAVAILABLE, message, retryable, fields);
    }
}
