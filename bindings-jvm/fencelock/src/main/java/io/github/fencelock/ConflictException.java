package io.github.fencelock;

import java.util.Map;

/** The data on the store under this name is not such a lock, or somebody else changed the value meanwhile. */
public final class ConflictException extends FencelockException {
    private static final long serialVersionUID = 1;

    ConflictException(String message, boolean retryable, Map<String, String> fields) {
        super(Code.CONFLICT, message, retryable, fields);
    }
}
