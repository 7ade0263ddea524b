package io.github.fencelock;

import java.util.Locale;
import java.util.Map;

/** How a release ended. All three are values: none of them hides the error of what was done under the lock. */
public enum Released {
    /** The lock was held until now and is free, or somebody else's, from now on. */
    RELEASED,
    /** The lock had been lost before. */
    ALREADY_LOST,
    /** The store did not answer. The release is repeated until it does or the lease has ended. */
    UNCONFIRMED;

    private static final String LOST = "the lock was lost before its release; what was done last was not protected";

    /**
     * Nothing, unless the lock had been lost before its release: where that must not pass unseen.
     *
     * @throws LockLostException if the lock had been lost
     */
    public void check() {
        if (this == ALREADY_LOST) {
            throw new LockLostException(LOST, false, Map.of());
        }
    }

    /**
     * The same, with the lock's name and token in the exception.
     *
     * @throws LockLostException if the lock had been lost
     */
    public void check(Guard guard) {
        if (this == ALREADY_LOST) {
            Map<String, String> fields = Map.of("name", guard.name(), "token", String.valueOf(guard.token()));
            throw new LockLostException(LOST + " (name: " + guard.name() + ", token: " + guard.token() + ")", false, fields);
        }
    }

    /** The word every language writes, {@code already_lost} for instance. */
    @Override
    public String toString() {
        return name().toLowerCase(Locale.ROOT);
    }

    static Released of(Object word) {
        return valueOf(((String) word).toUpperCase(Locale.ROOT));
    }
}
