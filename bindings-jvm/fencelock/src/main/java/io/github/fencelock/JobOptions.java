package io.github.fencelock;

import java.time.Duration;

/**
 * Options of a job. Written from the core's table of options; {@code OptionTableTest} keeps it so.
 *
 * @param <T> what has these options
 */
public interface JobOptions<T> extends HoldOptions<T> {
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
}
