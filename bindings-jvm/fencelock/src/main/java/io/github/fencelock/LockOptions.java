package io.github.fencelock;

import java.time.Duration;

/**
 * Options of a lock. Written from the core's table of options; {@code OptionTableTest} keeps it so.
 *
 * @param <T> what has these options
 */
public interface LockOptions<T> extends WaitOptions<T> {
    /**
     * Whether the lease is renewed, at a third of its length, for as long as the guard lives. {@code false}: a
     * fixed lease. (Runs of jobs are always renewed.) By default {@code true}.
     */
    default T renew(boolean renew) {
        return option("renew", renew);
    }

    /**
     * The longest time a lock may be held, however often it is renewed. By default {@code none}, which is {@code
     * null} here.
     */
    default T maxHold(Duration maxHold) {
        return option("max_hold", maxHold);
    }

    /**
     * Whether waiters get the lock in their order of arrival. {@code auto}: where the store can do that, which is
     * everywhere except on Redlock. {@code true}: refused where it cannot. {@code false}: the first client that
     * asks gets a free lock, which gives more throughput; a waiter is passed over at most twice, and for at most a
     * second. By default {@code auto}.
     */
    default T fair(boolean fair) {
        return option("fair", fair);
    }

    /**
     * How many permits of a semaphore are taken at once, all or none. Not on etcd and ZooKeeper. By default {@code
     * 1}.
     */
    default T permits(int permits) {
        return option("permits", permits);
    }

    /**
     * How often a lock may pass from waiter to waiter inside this client (for at most 10 ms) before other clients
     * are served. {@code 0}: never. By default {@code 16}.
     */
    default T local(int local) {
        return option("local", local);
    }
}
