package io.github.fencelock;

import java.time.Duration;

/**
 * Options that only a client has: how it deals with its store. Written from the core's table of options; {@code
 * OptionTableTest} keeps it so.
 *
 * @param <T> what has these options
 */
public interface StoreOptions<T> {
    /**
     * Sets any option by its name in the table, from text, a number, a boolean, a duration or a map. An unknown one
     * is refused, with the nearest known one, by whatever is done then.
     */
    T option(String name, Object value);

    /**
     * Text that stands before every name on the store, so that programs share it without meeting: with {@code
     * shop:} the lock {@code orders} lies there as {@code shop:orders}. Not before the keys of your own table
     * ({@code on_table}). By default empty.
     */
    default T prefix(String prefix) {
        return option("prefix", prefix);
    }

    /**
     * How long to wait for an answer of the store. After that the outcome counts as unknown. By default {@code 5s}.
     */
    default T timeout(Duration timeout) {
        return option("timeout", timeout);
    }

    /**
     * On a quorum: the longest lease, and how long a node that may have lost its data does not vote. All clients
     * must use the same value. By default {@code 60s}.
     */
    default T maxTtl(Duration maxTtl) {
        return option("max_ttl", maxTtl);
    }

    /**
     * How long to try to reach the store. After that it counts as unavailable. By default {@code 5s}.
     */
    default T connectTimeout(Duration connectTimeout) {
        return option("connect_timeout", connectTimeout);
    }

    /**
     * On Redis: how many replicas must confirm a grant or a renewal before it counts. A failover to one of them
     * then loses no lock. By default {@code 0}.
     */
    default T acks(int acks) {
        return option("acks", acks);
    }

    /**
     * On a database: whether to make fencelock's tables if they are not there. By default {@code false}.
     */
    default T create(boolean create) {
        return option("create", create);
    }

    /**
     * On PostgreSQL: the schema in which fencelock's tables and functions lie. Empty: the first one of the user's
     * search path. By default empty.
     */
    default T schema(String schema) {
        return option("schema", schema);
    }

    /**
     * On PostgreSQL and MySQL: the name of the table of locks. The names of fencelock's other tables and functions
     * begin with it. Letters a to z, digits and {@code _}. Tables of another name have other locks. By default
     * {@code fencelock}.
     */
    default T table(String table) {
        return option("table", table);
    }

    /**
     * On PostgreSQL: whether a commit waits for the server's disk ({@code durable}). {@code relaxed} is many times
     * quicker; a crash of the server may then undo the changes of the last second, tokens still rise. By default
     * {@code durable}.
     */
    default T durability(String durability) {
        return option("durability", durability);
    }

    /**
     * On a database: {@code verify-full} is TLS with a server that proves to be the one, {@code disable} is no TLS.
     * {@code auto}: {@code verify-full}, but nothing is encrypted on the way to this machine itself ({@code
     * localhost}, a socket file). {@code require} means {@code verify-full} here, {@code prefer} and {@code allow}
     * mean {@code auto}. {@code verify-ca}, with TLS but on MySQL: the certificate must come from a trusted
     * authority, but may name another host. By default {@code auto}.
     */
    default T sslmode(String sslmode) {
        return option("sslmode", sslmode);
    }

    /**
     * With TLS: the name that the server's certificate must have, where the server is reached by another name.
     * Empty: the host of the URL. By default empty.
     */
    default T tlsName(String tlsName) {
        return option("tls_name", tlsName);
    }

    /**
     * On Redis, PostgreSQL and MySQL: a file with the password, read anew for each connection, so that it may
     * change. A line's end behind it does not count. Empty: the password of the URL. By default empty.
     */
    default T passwordFile(String passwordFile) {
        return option("password_file", passwordFile);
    }

    /**
     * With TLS ({@code rediss://}): a file of PEM certificates. Only these authorities are trusted for the server's
     * certificate. Empty: those the system trusts. By default empty.
     */
    default T cacert(String cacert) {
        return option("cacert", cacert);
    }

    /**
     * With TLS: a file with this client's own certificate, for servers that ask for one. By default empty.
     */
    default T cert(String cert) {
        return option("cert", cert);
    }

    /**
     * With TLS: a file with the private key of {@code cert}. By default empty.
     */
    default T key(String key) {
        return option("key", key);
    }
}
