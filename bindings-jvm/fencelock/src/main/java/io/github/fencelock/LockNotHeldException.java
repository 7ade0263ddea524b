package io.github.fencelock;

import java.util.Map;

/** The guard was given back before; acquire the lock again. */
public final class LockNotHeldException extends FencelockException {
    private static final long serialVersionUID = 1;

    LockNotHeldException(String message, boolean retryable, Map<String, String> fields) {
        super(Code.NOT_HELD, message, retryable, fields);
    }
}
