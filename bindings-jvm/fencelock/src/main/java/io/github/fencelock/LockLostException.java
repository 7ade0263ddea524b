package io.github.fencelock;

import java.util.Map;

/** The lock was held and is not any more: stop writing, and acquire it again if the work must go on. */
public final class LockLostException extends FencelockException {
    private static final long serialVersionUID = 1;

    LockLostException(String message, boolean retryable, Map<String, String> fields) {
        super(Code.LOST, message, retryable, fields);
    }
}
