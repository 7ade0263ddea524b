package io.github.fencelock;

import java.time.Instant;
import java.util.Map;
import java.util.Optional;

/** A job's last run, for people who look. */
public final class JobState extends Seen {
    private JobState(Map<String, Object> run) {
        super(run);
    }

    static Optional<JobState> of(Object seen) {
        return Optional.ofNullable(seen).map(Shape::map).map(JobState::new);
    }

    /** How a run stands. */
    public enum Status {
        /** It has succeeded. */
        SUCCEEDED("S"),
        /** It has failed. */
        FAILED("F"),
        /** It is in progress. */
        IN_PROGRESS("P");

        private final String letter;

        Status(String letter) {
            this.letter = letter;
        }

        /** The letter on the store: {@code S}, {@code F} or {@code P}. */
        public String letter() {
            return letter;
        }

        private static Status of(Object letter) {
            return "S".equals(letter) ? SUCCEEDED : "F".equals(letter) ? FAILED : IN_PROGRESS;
        }
    }

    /** How it stands. */
    public Status status() {
        return Status.of(field("status"));
    }

    /** Whether it is in progress but was not heard of for so long that it counts as dead. */
    public boolean dead() {
        return (Boolean) field("dead");
    }

    /** Its scheduled instant. */
    public Instant instant() {
        return Shape.instant(field("instant"));
    }

    /** Its fencing token. */
    public long token() {
        return number("token");
    }

    /** When it started, by the store's clock. */
    public Instant started() {
        return Shape.instant(field("started"));
    }

    /** When it was last heard of, or ended. */
    public Instant heard() {
        return Shape.instant(field("heard"));
    }

    /** The information it gave about itself. */
    public Map<String, Object> info() {
        return field("info") instanceof Map ? Shape.map(field("info")) : Map.of();
    }
}
