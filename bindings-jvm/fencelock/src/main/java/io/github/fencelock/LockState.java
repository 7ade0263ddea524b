package io.github.fencelock;

import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;

/** A lock as it lies on the store, for people who look. */
public final class LockState extends Seen {
    private LockState(Map<String, Object> seen) {
        super(seen);
    }

    static LockState of(Object seen) {
        return new LockState(Shape.map(seen));
    }

    static List<Holder> holders(Object seen) {
        return Shape.list(seen).stream().map(Shape::map).map(Holder::new).toList();
    }

    /** The kind that it is in use as: {@code mutex}, {@code read_write} or {@code semaphore}. */
    public String kind() {
        return text("kind");
    }

    /** The present holders, in the order of their tokens. */
    public List<Holder> holders() {
        return list("holders", Holder::new);
    }

    /** The newest token drawn. */
    public long last() {
        return number("last");
    }

    /** The queue, head first. */
    public List<Waiter> waiters() {
        return list("waiters", Waiter::new);
    }

    /** A holder. */
    public static final class Holder extends Seen {
        Holder(Map<String, Object> seen) {
            super(seen);
        }

        /** How it holds. */
        public Mode mode() {
            return Mode.of(field("mode"));
        }

        /** Its token; empty for a holder that is not fencelock's. */
        public OptionalLong token() {
            return Shape.optionalNumber(field("token"));
        }

        /** The time left of its lease; empty if it has no end. */
        public Optional<Duration> left() {
            return Shape.optionalTime(field("left"));
        }

        /** How long it has held; empty if the store does not know. */
        public Optional<Duration> heldFor() {
            return Shape.optionalTime(field("held_for"));
        }

        /** The information it gave about itself: {@code host}, {@code pid}, {@code app}, {@code language} and the option {@code info}. */
        public Map<String, Object> info() {
            return Shape.info(text("info"));
        }
    }

    /** A waiter. */
    public static final class Waiter extends Seen {
        private Waiter(Map<String, Object> seen) {
            super(seen);
        }

        /** How it wants to hold. */
        public Mode mode() {
            return Mode.of(field("mode"));
        }

        /** The information it gave about itself. */
        public Map<String, Object> info() {
            return Shape.info(text("info"));
        }

        /** How long it has been in the queue. */
        public Duration waitingFor() {
            return Shape.time(field("waiting_for"));
        }
    }
}
