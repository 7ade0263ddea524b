package io.github.fencelock.kotlin

import kotlin.time.Duration

/**
 * Options that only a client has: how it deals with its store. Written from the core's table of options;
 * `OptionTableTest` keeps it so.
 *
 * @param T what has these options.
 */
public interface StoreOptions<T> {
    /**
     * Sets any option by its name in the table, from text, a number, a boolean, a duration or a map. An unknown one
     * is refused, with the nearest known one, by whatever is done then.
     */
    public fun option(name: String, value: Any?): T

    /**
     * Text that stands before every name on the store, so that programs share it without meeting: with `shop:` the
     * lock `orders` lies there as `shop:orders`. Not before the keys of your own table (`on_table`). By default
     * empty.
     */
    public fun prefix(prefix: String): T = option("prefix", prefix)

    /**
     * How long to wait for an answer of the store. After that the outcome counts as unknown. By default `5s`.
     */
    public fun timeout(timeout: Duration): T = option("timeout", timeout)

    /**
     * On a quorum: the longest lease, and how long a node that may have lost its data does not vote. All clients
     * must use the same value. By default `60s`.
     */
    public fun maxTtl(maxTtl: Duration): T = option("max_ttl", maxTtl)

    /**
     * How long to try to reach the store. After that it counts as unavailable. By default `5s`.
     */
    public fun connectTimeout(connectTimeout: Duration): T = option("connect_timeout", connectTimeout)

    /**
     * On Redis: how many replicas must confirm a grant or a renewal before it counts. A failover to one of them
     * then loses no lock. By default `0`.
     */
    public fun acks(acks: Int): T = option("acks", acks)

    /**
     * On a database: whether to make fencelock's tables if they are not there. By default `false`.
     */
    public fun create(create: Boolean): T = option("create", create)

    /**
     * On PostgreSQL: the schema in which fencelock's tables and functions lie. Empty: the first one of the user's
     * search path. By default empty.
     */
    public fun schema(schema: String): T = option("schema", schema)

    /**
     * On PostgreSQL and MySQL: the name of the table of locks. The names of fencelock's other tables and functions
     * begin with it. Letters a to z, digits and `_`. Tables of another name have other locks. By default
     * `fencelock`.
     */
    public fun table(table: String): T = option("table", table)

    /**
     * On PostgreSQL: whether a commit waits for the server's disk (`durable`). `relaxed` is many times quicker; a
     * crash of the server may then undo the changes of the last second, tokens still rise. By default `durable`.
     */
    public fun durability(durability: String): T = option("durability", durability)

    /**
     * On a database: `verify-full` is TLS with a server that proves to be the one, `disable` is no TLS. `auto`:
     * `verify-full`, but nothing is encrypted on the way to this machine itself (`localhost`, a socket file).
     * `require` means `verify-full` here, `prefer` and `allow` mean `auto`. `verify-ca`, with TLS but on MySQL: the
     * certificate must come from a trusted authority, but may name another host. By default `auto`.
     */
    public fun sslmode(sslmode: String): T = option("sslmode", sslmode)

    /**
     * With TLS: the name that the server's certificate must have, where the server is reached by another name.
     * Empty: the host of the URL. By default empty.
     */
    public fun tlsName(tlsName: String): T = option("tls_name", tlsName)

    /**
     * On Redis, PostgreSQL and MySQL: a file with the password, read anew for each connection, so that it may
     * change. A line's end behind it does not count. Empty: the password of the URL. By default empty.
     */
    public fun passwordFile(passwordFile: String): T = option("password_file", passwordFile)

    /**
     * With TLS (`rediss://`): a file of PEM certificates. Only these authorities are trusted for the server's
     * certificate. Empty: those the system trusts. By default empty.
     */
    public fun cacert(cacert: String): T = option("cacert", cacert)

    /**
     * With TLS: a file with this client's own certificate, for servers that ask for one. By default empty.
     */
    public fun cert(cert: String): T = option("cert", cert)

    /**
     * With TLS: a file with the private key of `cert`. By default empty.
     */
    public fun key(key: String): T = option("key", key)
}
