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
        SUCCEEDED("succeeded"),
        /** It has failed. */
        FAILED("failed"),
        /** It is in progress. */
        IN_PROGRESS("in_progress");

        private final String word;

        Status(String word) {
            this.word = word;
        }

        /** The word of every language: {@code succeeded}, {@code failed} or {@code in_progress}. */
        public String word() {
            return word;
        }

        private static Status of(Object word) {
            return SUCCEEDED.word.equals(word) ? SUCCEEDED : FAILED.word.equals(word) ? FAILED : IN_PROGRESS;
        }
    }

    /** How it stands. */
    public Status status() {
        return Status.of(field("status"));
    }

    /** Whether it is in progress but was not seen alive for so long that it counts as dead. */
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

    /** When it was last seen alive, or ended. */
    public Instant seen() {
        return Shape.instant(field("seen"));
    }

    /** The information it gave about itself. */
    public Map<String, Object> info() {
        return field("info") instanceof Map ? Shape.map(field("info")) : Map.of();
    }
}
