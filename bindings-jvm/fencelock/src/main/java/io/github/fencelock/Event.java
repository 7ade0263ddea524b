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
 * @param reason the cause, of troubles, losses, late renewals and runs that are skipped
 */
public record Event(Kind kind, String name, OptionalLong token, Optional<String> reason) {
    /** The kinds of events. */
    public enum Kind {
        /** An acquire has to wait. Told once. */
        WAITING,
        /** An acquire has waited for 30 s. Told once. */
        LONG_WAIT,
        /** The store refuses or does not answer an acquire that waits; it goes on asking. */
        TROUBLE,
        /** A lock was granted. */
        GRANTED,
        /** The lease was renewed. */
        RENEWED,
        /** The lease was renewed when it had nearly ended: the store or this process is slow. */
        LATE_RENEWAL,
        /** A guard was given back. */
        RELEASED,
        /** A hold was lost before it was given back. */
        LOST,
        /** A job was asked for a run, and there is none to start. The token is the last run's. */
        SKIPPED
    }

    static Event of(Map<String, Object> event) {
        return new Event(
            Kind.valueOf(((String) event.get("kind")).toUpperCase(Locale.ROOT)),
            (String) event.get("name"),
            Shape.optionalNumber(event.get("token")),
            Optional.ofNullable((String) event.get("reason")));
    }
}
