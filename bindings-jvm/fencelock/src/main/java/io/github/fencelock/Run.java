package io.github.fencelock;

import java.time.Instant;
import java.util.Map;
import java.util.concurrent.CompletableFuture;

/** A run of a job. Closing it without {@link #succeed} marks it as failed. */
public final class Run extends Hold implements Start {
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
        return end(true);
    }

    /** As {@link #succeed}, without waiting. */
    public CompletableFuture<Released> succeedAsync() {
        return endAsync(true);
    }

    /**
     * Marks the run as failed and tells how that went.
     *
     * @throws LockNotHeldException if its end was told before
     */
    public Released fail() {
        return end(false);
    }

    /** As {@link #fail}, without waiting. */
    public CompletableFuture<Released> failAsync() {
        return endAsync(false);
    }

    private Released end(boolean succeeded) {
        givesBack();
        return ending(succeeded).get();
    }

    private CompletableFuture<Released> endAsync(boolean succeeded) {
        givesBack();
        return ending(succeeded).async();
    }

    private Request<Released> ending(boolean succeeded) {
        return giving(Map.of("op", "end_job", "guard", number, "succeeded", succeeded));
    }

    /**
     * Marks the run as failed, unless its end was told before.
     *
     * @throws LockLostException if it had been lost
     */
    @Override
    public void close() {
        if (givesBack()) {
            ending(false).get().check();
        }
    }
}
