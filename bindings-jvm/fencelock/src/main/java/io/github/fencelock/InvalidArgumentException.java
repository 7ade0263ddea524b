package io.github.fencelock;

import java.util.Map;

/** A name, option or URL is not acceptable; the message and the field {@code argument} name it. */
public final class InvalidArgumentException extends FencelockException {
    private static final long serialVersionUID = 1;

    InvalidArgumentException(String message, boolean retryable, Map<String, String> fields) {
        super(Code.INVALID, message, retryable, fields);
    }
}
