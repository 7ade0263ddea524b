package io.github.fencelock;

import java.time.Duration;
import java.time.Instant;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;

/** Something that happened to a lock of a client; see {@link ClientOptions#onEvent}. Every event goes to the log too. */
public final class Event extends Seen {
    /** The kinds of events. Later versions may have more. */
    public enum Kind {
        /** An acquire has to wait. Once for each acquire. */
        WAITING,
        /** An acquire has waited for 30 s. Once for each acquire. */
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
        /** This client has broken a hold of another one ({@link Client#breakLock}). */
        BROKEN,
        /** A job was asked for a run, and there is none to start. The token is the last run's. */
        SKIPPED;

        /** The word every language writes, {@code long_wait} for instance. */
        @Override
        public String toString() {
            return name().toLowerCase(Locale.ROOT);
        }
    }

    Event(Map<String, Object> told) {
        super(told);
    }

    /** The kind. */
    public Kind kind() {
        return Kind.valueOf(text("kind").toUpperCase(Locale.ROOT));
    }

    /** The lock; empty where it concerns all of the client's. */
    public String name() {
        return text("name");
    }

    /** The time, on this machine's clock. */
    public Instant at() {
        return Shape.instant(field("at"));
    }

    /** The token of the hold it happened to, if there is one. */
    public OptionalLong token() {
        return Shape.optionalNumber(field("token"));
    }

    /** The number of the acquire in this client, while it has no token, and with its grant. */
    public OptionalLong attempt() {
        return Shape.optionalNumber(field("attempt"));
    }

    /** The time an acquire has waited, for {@link Kind#GRANTED} and {@link Kind#LONG_WAIT}. */
    public Optional<Duration> waited() {
        return Shape.optionalTime(field("waited"));
    }

    /** The time a guard had the lock, for {@link Kind#RELEASED} and {@link Kind#LOST}. */
    public Optional<Duration> held() {
        return Shape.optionalTime(field("held"));
    }

    /**
     * The cause, for {@link Kind#TROUBLE}, {@link Kind#LOST}, {@link Kind#BROKEN}, {@link Kind#LATE_RENEWAL} and
     * {@link Kind#SKIPPED}.
     */
    public Optional<String> reason() {
        return optionalText("reason");
    }

    /** The holder, as people read it, for {@link Kind#LONG_WAIT}, if the store says. */
    public Optional<String> holder() {
        return optionalText("holder");
    }

    /** Whether the log has it as a warning. */
    public boolean isWarning() {
        return Boolean.TRUE.equals(field("warning"));
    }

    /** The line in the log. */
    @Override
    public String toString() {
        return text("text");
    }
}
