package io.github.fencelock;

import java.time.Instant;
import java.util.Map;
import java.util.concurrent.CompletableFuture;

/** A run of a job: a guard that ends with how it went. Closing it without {@link #succeed} marks it as failed. */
public final class Run extends Guard implements Start {
    private final Instant instant;

    Run(Client client, String name, Map<String, Object> granted) {
        super(client, name, granted);
        instant = Shape.instant(granted.get("instant"));
    }

    /** The scheduled instant that this run is for. */
    public Instant instant() {
        use();
        return instant;
    }

    /**
     * Marks the run as succeeded and tells how that went; {@link Released#ALREADY_LOST}: it counted as dead before. A store
     * that does not answer is asked again until the run's lease ends.
     *
     * @throws LockNotHeldException if its end was told before
     */
    public Released succeed() {
        return ending(true).get();
    }

    /** As {@link #succeed}, without waiting. */
    public CompletableFuture<Released> succeedAsync() {
        return ending(true).async();
    }

    /**
     * Marks the run as failed and tells how that went.
     *
     * @throws LockNotHeldException if its end was told before
     */
    public Released fail() {
        return release();
    }

    /** As {@link #fail}, without waiting. */
    public CompletableFuture<Released> failAsync() {
        return releaseAsync();
    }
}
