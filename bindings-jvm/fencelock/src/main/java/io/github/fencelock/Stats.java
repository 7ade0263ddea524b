package io.github.fencelock;

import java.util.Map;

/** The numbers of operations, guards and locks that a client carries; all 0 at rest. */
public final class Stats extends Seen {
    Stats(Map<String, Object> load) {
        super(load);
    }

    /** Operations under way. */
    public long running() {
        return number("running");
    }

    /** Answers that nobody has taken yet, of all clients of this process. */
    public long done() {
        return number("done");
    }

    /** Guards that were not given back. */
    public long guards() {
        return number("guards");
    }

    /** Attempts, tickets and holds. */
    public long entries() {
        return number("entries");
    }

    /** Locks that the entries belong to. */
    public long locks() {
        return number("locks");
    }
}
