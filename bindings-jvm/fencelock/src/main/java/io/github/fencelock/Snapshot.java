package io.github.fencelock;

import java.util.Map;
import java.util.Optional;

/**
 * A value and the version it was read at, or written as.
 *
 * @param value the value, as {@link Versioned} says
 * @param version its version
 */
public record Snapshot(Object value, long version) {
    static Optional<Snapshot> of(Object seen) {
        return Optional.ofNullable(seen).map(Shape::map).map(Snapshot::of);
    }

    private static Snapshot of(Map<String, Object> seen) {
        return new Snapshot(seen.get("value"), Shape.number(seen.get("version")));
    }
}
