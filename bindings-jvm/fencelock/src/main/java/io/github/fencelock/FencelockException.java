package io.github.fencelock;

import java.util.Map;

/**
 * An error of fencelock: a stable {@link Code}, a message that says what to do, and the facts as fields. Each code has a class of
 * its own. Messages and fields never carry a password.
 */
public abstract class FencelockException extends RuntimeException {
    private static final long serialVersionUID = 1;

    private final Code code;
    private final boolean retryable;
    @SuppressWarnings("serial") // The map is one that can be written.
    private final Map<String, String> fields;

    FencelockException(Code code, String message, boolean retryable, Map<String, String> fields) {
        super(message);
        this.code = code;
        this.retryable = retryable;
        this.fields = fields;
    }

    /** The exception that an error of the core is. */
    static FencelockException of(Map<String, Object> error) {
        String message = (String) error.get("message");
        boolean retryable = Boolean.TRUE.equals(error.get("retryable"));
        Map<String, String> fields = Shape.fields(error.get("fields"));
        return switch (Code.of((String) error.get("code"))) {
            case TIMEOUT -> new LockTimeoutException(message, retryable, fields);
            case LOST -> new LockLostException(message, retryable, fields);
            case NOT_HELD -> new LockNotHeldException(message, retryable, fields);
            case INVALID -> new InvalidArgumentException(message, retryable, fields);
            case UNSUPPORTED -> new UnsupportedException(message, retryable, fields);
            case UNAVAILABLE -> new UnavailableException(message, retryable, fields);
            case AUTH -> new AuthException(message, retryable, fields);
            case CONFLICT -> new ConflictException(message, retryable, fields);
            case CANCELLED -> new CancelledException(message, retryable, fields);
            case CLOSED -> new ClosedException(message, retryable, fields);
            case INTERNAL -> new InternalException(message, retryable, fields);
        };
    }

    /** The stable kind. */
    public final Code code() {
        return code;
    }

    /** Whether the same call may succeed later. */
    public final boolean retryable() {
        return retryable;
    }

    /** The facts by name, the lock's {@code name} for instance. */
    public final Map<String, String> fields() {
        return fields == null ? Map.of() : fields;
    }
}
