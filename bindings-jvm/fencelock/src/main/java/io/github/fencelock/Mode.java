package io.github.fencelock;

import java.util.Locale;

/** How a lock is held, and who may hold beside. */
public enum Mode {
    /** The only holder of a mutex. */
    EXCLUSIVE,
    /** One of any number of readers. */
    READ,
    /** The writer: nobody beside it. */
    WRITE,
    /** One of a limited number of permits. */
    PERMIT;

    /** The word every language writes. */
    @Override
    public String toString() {
        return name().toLowerCase(Locale.ROOT);
    }

    static Mode of(Object word) {
        return valueOf(((String) word).toUpperCase(Locale.ROOT));
    }
}
