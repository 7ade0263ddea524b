package io.github.fencelock;

import java.time.Duration;

/**
 * Options of whatever is held: a lock, a run of a job, an office. Written from the core's table of options;
 * {@code OptionTableTest} keeps it so.
 *
 * @param <T> what has these options
 */
public interface HoldOptions<T> {
    /**
     * Sets any option by its name in the table, from text, a number, a boolean, a duration or a map. An unknown one
     * is refused, with the nearest known one, by whatever is done then.
     */
    T option(String name, Object value);

    /**
     * Length of the lease. If the holder dies, the lock is free again after at most this time. By default {@code
     * 30s}.
     */
    default T ttl(Duration ttl) {
        return option("ttl", ttl);
    }

    /**
     * Information for people who inspect the lock: a short text, or texts by name. As text the latter are JSON,
     * {@code {"order":"42"}}. By default empty.
     */
    default T info(String info) {
        return option("info", info);
    }
}
