package io.github.fencelock;

import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.Instant;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;

/** The core's answers, taken apart. */
final class Shape {
    private Shape() {}

    @SuppressWarnings("unchecked")
    static Map<String, Object> map(Object value) {
        return (Map<String, Object>) value;
    }

    @SuppressWarnings("unchecked")
    static List<Object> list(Object value) {
        return (List<Object>) value;
    }

    static List<String> texts(Object value) {
        return list(value).stream().map(String.class::cast).toList();
    }

    /** Facts of an error, in their order; none if there are none. */
    static Map<String, String> fields(Object value) {
        Map<String, String> fields = new LinkedHashMap<>();
        if (value != null) {
            map(value).forEach((name, fact) -> fields.put(name, (String) fact));
        }
        return Collections.unmodifiableMap(fields);
    }

    /** The information that a holder or waiter gave about itself, which lies on the store as JSON. */
    static Map<String, Object> info(String json) {
        Object said = Parcel.read(Natives.parse(json.getBytes(StandardCharsets.UTF_8)));
        return said instanceof Map ? map(said) : Map.of();
    }

    static long number(Object value) {
        return ((Number) value).longValue();
    }

    static OptionalLong optionalNumber(Object value) {
        return value == null ? OptionalLong.empty() : OptionalLong.of(number(value));
    }

    /** From milliseconds. */
    static Duration time(Object value) {
        return Duration.ofNanos(Math.round(((Number) value).doubleValue() * 1e6));
    }

    static Optional<Duration> optionalTime(Object value) {
        return Optional.ofNullable(value).map(Shape::time);
    }

    /** From milliseconds since 1970. */
    static Instant instant(Object value) {
        double millis = ((Number) value).doubleValue();
        // A double has microseconds of our age, and no more.
        long micros = Math.round(millis * 1e3);
        return Instant.ofEpochSecond(Math.floorDiv(micros, 1_000_000), Math.floorMod(micros, 1_000_000) * 1_000);
    }
}
