package io.github.fencelock;

import java.util.Optional;

/** How a compare-and-set ended. */
public sealed interface Swapped {
    /**
     * The value was written.
     *
     * @param version what it was written as
     */
    record Done(long version) implements Swapped {}

    /**
     * Somebody was faster, and nothing was written.
     *
     * @param found what is there instead; empty if there is no value
     */
    record Changed(Optional<Snapshot> found) implements Swapped {}

    /** Whether the value was written. */
    default boolean isDone() {
        return this instanceof Done;
    }
}
