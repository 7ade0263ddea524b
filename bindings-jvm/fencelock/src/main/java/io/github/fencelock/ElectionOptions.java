package io.github.fencelock;

import java.time.Duration;

/**
 * Options of an election. Written from the core's table of options; {@code OptionTableTest} keeps it so.
 *
 * @param <T> what has these options
 */
public interface ElectionOptions<T> extends WaitOptions<T> {
    /**
     * How often an observer of an election asks who leads. By default {@code 1s}.
     */
    default T observe(Duration observe) {
        return option("observe", observe);
    }
}
