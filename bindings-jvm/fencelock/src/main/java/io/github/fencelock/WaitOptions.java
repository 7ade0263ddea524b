package io.github.fencelock;

import java.time.Duration;

/**
 * Options that a lock and an election have. Written from the core's table of options; {@code OptionTableTest}
 * keeps it so.
 *
 * @param <T> what has these options
 */
public interface WaitOptions<T> extends HoldOptions<T> {
    /**
     * How long {@code acquire} waits for the lock before it fails with {@code timeout}. {@code 0s} asks once and
     * does not queue. By default {@code forever}, which is {@code null} here.
     */
    default T waitAtMost(Duration waitAtMost) {
        return option("wait", waitAtMost);
    }

    /**
     * How the lock is stored. {@code auto} is the store's own layout. On Redis, {@code plain:<prefix>} is the
     * string key that redis-py, node-redlock and redsync use, and {@code redisson} is the layout of Redisson's
     * locks. On ZooKeeper, {@code kazoo} is that of kazoo's. On PostgreSQL and MySQL, {@code shedlock} and {@code
     * spring} are the rows of {@code ShedLock} and of Spring's {@code JdbcLockRegistry}. By default {@code auto}.
     */
    default T dialect(String dialect) {
        return option("dialect", dialect);
    }
}
