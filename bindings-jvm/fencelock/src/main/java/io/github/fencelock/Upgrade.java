package io.github.fencelock;

import java.util.concurrent.atomic.AtomicBoolean;

/**
 * An upgrade that came to its end: its guard is the writer. Who waits for it needs this no more; it is for what passes futures
 * on and finds nobody left to hear of them, as a coroutine that was cancelled.
 *
 * <pre>{@code
 * try (Client client = Fencelock.connect("memory:");
 *      Guard guard = client.upgradeable("report").acquire()) {
 *     Upgrade upgrade = guard.upgradeAsync().join();
 *     upgrade.decline();
 *     client.readLock("report").acquire().close();
 * }
 * }</pre>
 */
public final class Upgrade {
    private final Guard guard;
    private final long number;
    private final AtomicBoolean stands = new AtomicBoolean(true);

    Upgrade(Guard guard, long number) {
        this.guard = guard;
        this.number = number;
    }

    long number() {
        return number;
    }

    /**
     * Gives the upgrade up as if it had not been asked for: the guard is the reader it was, unless it was a writer before or
     * another upgrade of it stands. Does not wait.
     */
    public void decline() {
        if (stands.getAndSet(false)) {
            guard.decline(this);
        }
    }
}
