package io.github.fencelock;

import java.util.Map;

/** The wait ended before the lock was granted. Nothing is held. */
public final class LockTimeoutException extends FencelockException {
    private static final long serialVersionUID = 1;

    LockTimeoutException(String message, boolean retryable, Map<String, String> fields) {
        super(Code.TIMEOUT, message, retryable, fields);
    }
}
