package io.github.fencelock;

import java.util.Map;

/** The store refused the credentials or the user's rights. */
public final class AuthException extends FencelockException {
    private static final long serialVersionUID = 1;

    AuthException(String message, boolean retryable, Map<String, String> fields) {
        super(Code.AUTH, message, retryable, fields);
    }
}
