package io.github.fencelock.kotlin

import kotlin.time.Duration

/**
 * Options of a lock, and of a client as defaults of its locks. Written from the core's table of options;
 * `OptionTableTest` keeps it so.
 *
 * @param T what has these options.
 */
public interface LockOptions<T> {
    /**
     * Sets any option by its name in the table, from text, a number, a boolean, a duration or a map. An unknown one
     * is refused, with the nearest known one, by whatever is done then.
     */
    public fun option(name: String, value: Any?): T

    /**
     * Length of the lease. If the holder dies, the lock is free again after at most this time. By default `30s`.
     */
    public fun ttl(ttl: Duration): T = option("ttl", ttl)

    /**
     * Whether the lease is renewed, at a third of its length, for as long as the guard lives. `false`: a fixed
     * lease. (Runs of jobs are always renewed.) By default `true`.
     */
    public fun renew(renew: Boolean): T = option("renew", renew)

    /**
     * How long `acquire` waits for the lock before it fails with `timeout`. `0s` asks once and does not queue. By
     * default `forever`, which is `null` here.
     */
    public fun waitAtMost(waitAtMost: Duration?): T = option("wait", waitAtMost)

    /**
     * The longest time a lock may be held, however often it is renewed. By default `none`, which is `null` here.
     */
    public fun maxHold(maxHold: Duration?): T = option("max_hold", maxHold)

    /**
     * Whether waiters get the lock in their order of arrival. `auto`: where the store can do that, which is
     * everywhere except on Redlock. `true`: refused where it cannot. `false`: the first client that asks gets a
     * free lock, which gives more throughput; a waiter is passed over at most twice, and for at most a second. By
     * default `auto`.
     */
    public fun fair(fair: Boolean): T = option("fair", fair)

    /**
     * How the lock is stored. `auto` is the store's own layout. On Redis, `plain:<prefix>` is the string key that
     * redis-py, node-redlock and redsync use, and `redisson` is the layout of Redisson's locks. On ZooKeeper,
     * `kazoo` is that of kazoo's. On PostgreSQL and MySQL, `shedlock` and `spring` are the rows of `ShedLock` and
     * of Spring's `JdbcLockRegistry`. By default `auto`.
     */
    public fun dialect(dialect: String): T = option("dialect", dialect)

    /**
     * A short text for people who inspect the lock. By default empty.
     */
    public fun label(label: String): T = option("label", label)

    /**
     * More texts for people who inspect the lock, by name. By default empty.
     */
    public fun metadata(metadata: Map<String, String>): T = option("metadata", metadata)

    /**
     * How often a lock may pass from waiter to waiter inside this client (for at most 10 ms) before other clients
     * are served. `0`: never. By default `16`.
     */
    public fun local(local: Int): T = option("local", local)

    /**
     * How often the update of a version tries again when another writer was faster, before it fails with
     * `conflict`. By default `16`.
     */
    public fun retries(retries: Int): T = option("retries", retries)

    /**
     * The longest pause before the first of these tries. It doubles with each try, up to 64 times; each pause is a
     * random part of it. By default `5ms`.
     */
    public fun backoff(backoff: Duration): T = option("backoff", backoff)

    /**
     * How long the store keeps a version's value after its last change. By default `forever`, which is `null` here.
     */
    public fun keep(keep: Duration?): T = option("keep", keep)

    /**
     * On PostgreSQL, MySQL and SQLite: keeps a version in a row of your own table, written as the table with three
     * of its columns in brackets: `account(id, version, balance)`. The first is the key, whose value is the
     * version's name. The second is a whole number that rises with each change. The third is the value. In a URL
     * whose scheme ends in `+row`: the table with its key only, `account(id)`, whose rows are then the locks. By
     * default empty.
     */
    public fun onTable(onTable: String): T = option("on_table", onTable)

    /**
     * The shortest time from the start of a job's run to the start of the next one, even if the run ends sooner. By
     * default `none`, which is `null` here.
     */
    public fun atLeastFor(atLeastFor: Duration?): T = option("at_least_for", atLeastFor)

    /**
     * The longest time a job's run may take. After that it is lost. By default `none`, which is `null` here.
     */
    public fun atMostFor(atMostFor: Duration?): T = option("at_most_for", atMostFor)

    /**
     * Whether a job's run that died before its end may run again, for the same scheduled instant. By default
     * `false`.
     */
    public fun retryDead(retryDead: Boolean): T = option("retry_dead", retryDead)

    /**
     * How often an observer of an election asks who leads. By default `1s`.
     */
    public fun observe(observe: Duration): T = option("observe", observe)
}
