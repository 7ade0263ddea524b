package io.github.fencelock;

import java.time.Duration;

/**
 * Options of a version. Written from the core's table of options; {@code OptionTableTest} keeps it so.
 *
 * @param <T> what has these options
 */
public interface VersionOptions<T> {
    /**
     * Sets any option by its name in the table, from text, a number, a boolean, a duration or a map. An unknown one
     * is refused, with the nearest known one, by whatever is done then.
     */
    T option(String name, Object value);

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
}
