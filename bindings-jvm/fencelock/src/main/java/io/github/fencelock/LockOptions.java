package io.github.fencelock;

import java.time.Duration;

/**
 * Options of a lock, and of a client as defaults of its locks. Written from the core's table of options; {@code
 * OptionTableTest} keeps it so.
 *
 * @param <T> what has these options
 */
public interface LockOptions<T> {
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
     * Whether the lease is renewed, at a third of its length, for as long as the guard lives. {@code false}: a
     * fixed lease. (Runs of jobs are always renewed.) By default {@code true}.
     */
    default T renew(boolean renew) {
        return option("renew", renew);
    }

    /**
     * How long {@code acquire} waits for the lock before it fails with {@code timeout}. {@code 0s} asks once and
     * does not queue. By default {@code forever}, which is {@code null} here.
     */
    default T waitAtMost(Duration waitAtMost) {
        return option("wait", waitAtMost);
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
     * How the lock is stored. {@code auto} is the store's own layout. On Redis, {@code plain:<prefix>} is the
     * string key that redis-py, node-redlock and redsync use, and {@code redisson} is the layout of Redisson's
     * locks. On ZooKeeper, {@code kazoo} is that of kazoo's. On PostgreSQL and MySQL, {@code shedlock} and {@code
     * spring} are the rows of {@code ShedLock} and of Spring's {@code JdbcLockRegistry}. By default {@code auto}.
     */
    default T dialect(String dialect) {
        return option("dialect", dialect);
    }

    /**
     * What people who inspect the lock are to know: a short text, or texts by name. As text the latter are JSON,
     * {@code {"order":"42"}}. By default empty.
     */
    default T info(String info) {
        return option("info", info);
    }

    /**
     * How many permits of a semaphore are taken at once, all or none. Not on etcd and ZooKeeper, nor with {@code
     * redisson}. By default {@code 1}.
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

    /**
     * How often the update of a version tries again when another writer was faster, before it fails with {@code
     * conflict}. By default {@code 16}.
     */
    default T retries(int retries) {
        return option("retries", retries);
    }

    /**
     * The longest pause before the first of these tries. It doubles with each try, up to 64 times; each pause is a
     * random part of it. By default {@code 5ms}.
     */
    default T backoff(Duration backoff) {
        return option("backoff", backoff);
    }

    /**
     * How long the store keeps a version's value after its last change. By default {@code forever}, which is {@code
     * null} here.
     */
    default T keep(Duration keep) {
        return option("keep", keep);
    }

    /**
     * On PostgreSQL and MySQL: keeps a version in a row of your own table, written as the table with three of its
     * columns in brackets: {@code account(id, version, balance)}. The first is the key, whose value is the
     * version's name. The second is a whole number that rises with each change. The third is the value. In a URL
     * whose scheme ends in {@code +row}: the table with its key only, {@code account(id)}, whose rows are then the
     * locks. By default empty.
     */
    default T onTable(String onTable) {
        return option("on_table", onTable);
    }

    /**
     * The shortest time from the start of a job's run to the start of the next one, even if the run ends sooner. By
     * default {@code none}, which is {@code null} here.
     */
    default T atLeastFor(Duration atLeastFor) {
        return option("at_least_for", atLeastFor);
    }

    /**
     * The longest time a job's run may take. After that it is lost. By default {@code none}, which is {@code null}
     * here.
     */
    default T atMostFor(Duration atMostFor) {
        return option("at_most_for", atMostFor);
    }

    /**
     * Whether a job's run that died before its end may run again, for the same scheduled instant. By default {@code
     * false}.
     */
    default T retryDead(boolean retryDead) {
        return option("retry_dead", retryDead);
    }

    /**
     * How often an observer of an election asks who leads. By default {@code 1s}.
     */
    default T observe(Duration observe) {
        return option("observe", observe);
    }
}
