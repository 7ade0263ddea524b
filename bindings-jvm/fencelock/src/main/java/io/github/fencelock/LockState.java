package io.github.fencelock;

import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;

/**
 * A lock as it lies on the store, for people who look.
 *
 * @param kind what it is in use as: {@code mutex}, {@code read_write} or {@code semaphore}
 * @param holders the present holders, in the order of their tokens
 * @param last the newest token drawn
 * @param waiters the queue, head first
 */
public record LockState(String kind, List<Holder> holders, long last, List<Waiter> waiters) {
    /**
     * A holder.
     *
     * @param mode how it holds
     * @param token its token; empty for a holder that is not fencelock's
     * @param left what is left of its lease; empty if it has no end
     * @param heldFor how long it has held; empty if the store does not know
     * @param info what it said of itself: {@code host}, {@code pid}, {@code app}, {@code language}, {@code label}
     */
    public record Holder(
        Mode mode, OptionalLong token, Optional<Duration> left, Optional<Duration> heldFor, Map<String, Object> info) {}

    /**
     * A waiter.
     *
     * @param mode how it wants to hold
     * @param info what it said of itself
     * @param waitingFor how long it has been in the queue
     */
    public record Waiter(Mode mode, Map<String, Object> info, Duration waitingFor) {}

    static LockState of(Object seen) {
        Map<String, Object> state = Shape.map(seen);
        return new LockState(
            (String) state.get("kind"),
            Shape.list(state.get("holders")).stream().map(Shape::map).map(LockState::holder).toList(),
            Shape.number(state.get("last")),
            Shape.list(state.get("waiters")).stream().map(Shape::map).map(LockState::waiter).toList());
    }

    private static Holder holder(Map<String, Object> seen) {
        return new Holder(
            Mode.of(seen.get("mode")),
            Shape.optionalNumber(seen.get("token")),
            Shape.optionalTime(seen.get("left")),
            Shape.optionalTime(seen.get("held_for")),
            Shape.info((String) seen.get("info")));
    }

    private static Waiter waiter(Map<String, Object> seen) {
        return new Waiter(
            Mode.of(seen.get("mode")), Shape.info((String) seen.get("info")), Shape.time(seen.get("waiting_for")));
    }
}
