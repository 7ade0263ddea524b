package io.github.fencelock;

import java.util.Map;

/**
 * What a client carries: all zeros at rest.
 *
 * @param running operations under way
 * @param done answers that nobody has heard yet, of all clients of this process
 * @param guards guards that were not given back
 * @param entries attempts, tickets and holds
 * @param locks locks that these are of
 */
public record Stats(long running, long done, long guards, long entries, long locks) {
    static Stats of(Map<String, Object> load) {
        return new Stats(
            Shape.number(load.get("running")),
            Shape.number(load.get("done")),
            Shape.number(load.get("guards")),
            Shape.number(load.get("entries")),
            Shape.number(load.get("locks")));
    }
}
