package io.github.fencelock;

import java.time.Instant;
import java.util.Map;
import java.util.Optional;

/**
 * A job's last run, for people who look.
 *
 * @param status how it stands
 * @param dead whether it is in progress but was not heard of for so long that it counts as dead
 * @param instant its scheduled instant
 * @param token its fencing token
 * @param started when it started, by the store's clock
 * @param heard when it was last heard of, or ended
 * @param info what it said of itself
 */
public record JobState(
    Status status, boolean dead, Instant instant, long token, Instant started, Instant heard, Map<String, Object> info) {

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

    static Optional<JobState> of(Object seen) {
        return Optional.ofNullable(seen).map(Shape::map).map(run -> new JobState(
            Status.of(run.get("status")),
            (Boolean) run.get("dead"),
            Shape.instant(run.get("instant")),
            Shape.number(run.get("token")),
            Shape.instant(run.get("started")),
            Shape.instant(run.get("heard")),
            run.get("info") instanceof Map ? Shape.map(run.get("info")) : Map.of()));
    }
}
