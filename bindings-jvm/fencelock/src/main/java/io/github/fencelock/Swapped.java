package io.github.fencelock;

import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;

/** How a compare-and-set ended: the value was written, or somebody was faster. */
public final class Swapped extends Seen {
    Swapped(Map<String, Object> told) {
        super(told);
    }

    /** Whether the value was written. */
    public boolean isDone() {
        return version().isPresent();
    }

    /** The version that was written; empty if somebody was faster. */
    public OptionalLong version() {
        return Shape.optionalNumber(field("done"));
    }

    /** The value that is there instead, if somebody was faster; empty if there is none. */
    public Optional<Snapshot> found() {
        return Snapshot.of(field("changed"));
    }
}
