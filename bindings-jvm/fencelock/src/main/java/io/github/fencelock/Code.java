package io.github.fencelock;

import java.util.Locale;

/** The stable kind of an error, the same in every language: match on this, show the message to people. */
public enum Code {
    /** The wait ended before the lock was granted. Nothing is held. */
    TIMEOUT,
    /** The lock was held and is not any more, or can no longer be proved to be. */
    LOST,
    /** The guard was released before, so there is nothing to act on. */
    NOT_HELD,
    /** A name, option or URL is not acceptable; the message names it. */
    INVALID,
    /** This store, dialect or platform cannot do what was asked. */
    UNSUPPORTED,
    /** The store could not be reached or could not answer; nothing is held. */
    UNAVAILABLE,
    /** The store refused the credentials or the user's rights. */
    AUTH,
    /** The data on the store under this name is not such a lock, or somebody else changed the value meanwhile. */
    CONFLICT,
    /** The caller gave the operation up, or a later request replaced it. */
    CANCELLED,
    /** The client was closed. */
    CLOSED,
    /** A defect of fencelock itself. */
    INTERNAL;

    /** The code as every language writes it, {@code not_held} for instance. */
    @Override
    public String toString() {
        return name().toLowerCase(Locale.ROOT);
    }

    static Code of(String word) {
        for (Code code : values()) {
            if (code.toString().equals(word)) {
                return code;
            }
        }
        return INTERNAL;
    }
}
