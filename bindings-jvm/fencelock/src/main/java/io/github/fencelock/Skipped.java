package io.github.fencelock;

import java.time.Instant;
import java.util.Map;
import java.util.Optional;

/**
 * No run was started: why, and what the store knew of the last one.
 *
 * @param why why
 * @param last the last run, and in its {@code info} who has it or had it
 * @param until when a run may start at the earliest, by the store's clock; while one is in progress, when that counts as dead
 *     unless it is heard of again; empty if only the scheduler knows the next instant
 */
public record Skipped(Why why, JobState last, Optional<Instant> until) implements Start {
    static Skipped of(Map<String, Object> skipped) {
        return new Skipped(
            Why.of(skipped.get("why")),
            JobState.of(skipped.get("last")).orElseThrow(),
            Optional.ofNullable(skipped.get("until")).map(Shape::instant));
    }
}
