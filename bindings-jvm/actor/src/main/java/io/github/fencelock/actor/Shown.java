package io.github.fencelock.actor;

import io.github.fencelock.JobState;
import io.github.fencelock.Leader;
import io.github.fencelock.Stats;
import io.github.fencelock.LockState;
import io.github.fencelock.Skipped;
import io.github.fencelock.Snapshot;
import io.github.fencelock.Swapped;
import java.time.Duration;
import java.time.Instant;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;

/** The answers of the package, in the form of the protocol. */
public final class Shown {
    private Shown() {}

    /** A record of these names and values, which may be null. */
    public static Map<String, Object> object(Object... namesAndValues) {
        Map<String, Object> object = new LinkedHashMap<>();
        for (int at = 0; at < namesAndValues.length; at += 2) {
            object.put((String) namesAndValues[at], namesAndValues[at + 1]);
        }
        return object;
    }

    private static Object number(OptionalLong number) {
        return number.isPresent() ? number.getAsLong() : null;
    }

    static double millis(Duration time) {
        return time.toNanos() / 1e6;
    }

    private static double millis(Instant instant) {
        return millis(Duration.between(Instant.EPOCH, instant));
    }

    /** A lock's state. */
    public static Object state(LockState state) {
        List<Map<String, Object>> holders = holders(state.holders());
        List<Map<String, Object>> waiters = state.waiters().stream().map(waiter -> object(
            "mode", waiter.mode().toString(),
            "info", waiter.info(),
            "waiting_for", millis(waiter.waitingFor()))).toList();
        return object(
            "kind", state.kind(),
            "holder", holders.isEmpty() ? null : holders.get(0),
            "holders", holders,
            "last", state.last(),
            "waiters", waiters);
    }

    /** Those who hold, or held. */
    public static List<Map<String, Object>> holders(List<LockState.Holder> holders) {
        return holders.stream().map(holder -> object(
            "mode", holder.mode().toString(),
            "token", number(holder.token()),
            "left", holder.left().map(Shown::millis).orElse(null),
            "held_for", holder.heldFor().map(Shown::millis).orElse(null),
            "info", holder.info())).toList();
    }

    /** The leader of an election. */
    public static Object leader(Leader leader) {
        return leader == null ? null : object("token", number(leader.token()), "info", leader.info());
    }

    /** Why there is no run. */
    public static Object skipped(Skipped skipped) {
        return object("skipped", object("reason", skipped.reason().word()));
    }

    /** A job's last run. */
    public static Object job(JobState run) {
        return run == null ? null : object(
            "status", run.status().word(),
            "dead", run.dead(),
            "instant", millis(run.instant()),
            "token", run.token(),
            "started", millis(run.started()),
            "seen", millis(run.seen()),
            "info", run.info());
    }

    /** A value and its version. */
    public static Object snapshot(Snapshot snapshot) {
        return snapshot == null ? null : object("value", snapshot.value(), "version", snapshot.version());
    }

    /** How a compare-and-set ended. */
    public static Object swapped(Swapped swapped) {
        return swapped.isDone()
            ? object("done", swapped.version().getAsLong())
            : object("changed", snapshot(swapped.found().orElse(null)));
    }

    /** The numbers of operations, guards, entries and locks that a client carries. */
    public static Object stats(Stats stats) {
        return object("running", stats.running(), "done", stats.done(), "guards", stats.guards(),
            "entries", stats.entries(), "locks", stats.locks());
    }
}
