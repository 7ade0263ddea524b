package io.github.fencelock;

import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;

/**
 * Something that happened to a lock of a client; see {@link ClientOptions#onEvent}.
 *
 * @param kind what happened
 * @param name the lock
 * @param token the token of the hold it happened to, if there is one
 * @param trouble what the trouble is, for {@link Kind#TROUBLE}
 */
public record Event(Kind kind, String name, OptionalLong token, Optional<String> trouble) {
    /** The kinds of events. */
    public enum Kind {
        /** An acquire has to wait. Told once. */
        WAITING,
        /** The store refuses or does not answer an acquire that waits; it goes on asking. */
        TROUBLE,
        /** A guard was given out. */
        GRANTED,
        /** The lease was pushed on. */
        RENEWED,
        /** A guard was given back. */
        RELEASED,
        /** A hold was lost before it was given back. */
        LOST
    }

    static Event of(Map<String, Object> event) {
        return new Event(
            Kind.valueOf(((String) event.get("kind")).toUpperCase(Locale.ROOT)),
            (String) event.get("name"),
            Shape.optionalNumber(event.get("token")),
            Optional.ofNullable((String) event.get("trouble")));
    }
}
