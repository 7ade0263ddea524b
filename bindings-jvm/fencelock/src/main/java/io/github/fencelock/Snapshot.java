package io.github.fencelock;

import java.util.HashMap;
import java.util.Map;
import java.util.Optional;

/** A value and its version. */
public final class Snapshot extends Seen {
    private Snapshot(Map<String, Object> seen) {
        super(seen);
    }

    static Optional<Snapshot> of(Object seen) {
        return Optional.ofNullable(seen).map(Shape::map).map(Snapshot::new);
    }

    static Snapshot written(Object value, long version) {
        Map<String, Object> written = new HashMap<>();
        written.put("value", value);
        written.put("version", version);
        return new Snapshot(written);
    }

    /** The value, as {@link Versioned} says. */
    public Object value() {
        return field("value");
    }

    /** The version it was read at, or written as. */
    public long version() {
        return number("version");
    }
}
