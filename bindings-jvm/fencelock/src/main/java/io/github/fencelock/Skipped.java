package io.github.fencelock;

import java.time.Instant;
import java.util.Map;
import java.util.Optional;

/** The answer of a {@link Job#start} that started no run. */
public final class Skipped implements Start {
    private final Reason reason;
    private final Optional<Instant> next;
    private final JobState last;

    Skipped(Map<String, Object> skipped) {
        reason = Reason.of(skipped.get("reason"));
        next = Optional.ofNullable(skipped.get("next")).map(Shape::instant);
        last = JobState.of(skipped.get("last")).orElseThrow();
    }

    /** The reason. */
    public Reason reason() {
        return reason;
    }

    /**
     * The earliest time at which it is worth asking again, by the store's clock. While a run is in progress: when that run
     * counts as dead, if it is not renewed. Empty if only the scheduler knows the next instant.
     */
    public Optional<Instant> next() {
        return next;
    }

    /** The last run, with its holder in {@code info}. */
    public JobState last() {
        return last;
    }

    @Override
    public String toString() {
        return "Skipped[reason=" + reason.word() + ", next=" + next + ", last=" + last + "]";
    }
}
