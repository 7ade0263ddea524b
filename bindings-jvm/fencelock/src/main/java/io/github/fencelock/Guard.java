package io.github.fencelock;

import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.CompletableFuture;

/**
 * The local proof that a lock is held. Use it in a {@code try}: leaving that gives the lock back.
 *
 * <pre>{@code
 * try (Client client = Fencelock.connect("memory:");
 *      Guard guard = client.lock("orders:42").acquire(Duration.ofSeconds(5))) {
 *     System.out.println("charging order 42 with token " + guard.token());
 * }
 * }</pre>
 */
public final class Guard extends Hold {
    private final Map<String, Long> tokens;

    Guard(Client client, String name, Map<String, Object> granted) {
        super(client, name, granted);
        Map<String, Long> each = new LinkedHashMap<>();
        Object several = granted.get("tokens");
        if (several != null) {
            Shape.map(several).forEach((one, token) -> each.put(one, Shape.number(token)));
        }
        tokens = each;
    }

    /** The fencing token of each lock, by name: of several as one each resource is handed its own. */
    public Map<String, Long> tokens() {
        use();
        return tokens.isEmpty() ? Map.of(name(), token()) : Map.copyOf(tokens);
    }

    /**
     * Frees the lock, waits for the store's answer and tells how that went. An interrupt is kept for later.
     *
     * @throws LockNotHeldException if it was given back before
     */
    public Released release() {
        givesBack();
        return releasing().get();
    }

    /** As {@link #release}, without waiting: the lock is freed whatever becomes of the future. */
    public CompletableFuture<Released> releaseAsync() {
        givesBack();
        return releasing().async();
    }

    private Request<Released> releasing() {
        return giving(Map.of("op", "release", "guard", number));
    }

    /**
     * Makes an upgradeable reader ({@link Client#upgradeable}) the writer: waits until the other readers have left, while no
     * new one enters. The guard then has a new token. If it fails or is interrupted, the guard is the reader it was. Several
     * at once are one, until the last is given up; a downgrade meanwhile overtakes them ({@link CancelledException}).
     *
     * @throws LockLostException if it was lost
     * @throws UnsupportedException if the guard reads plainly: two that tried would wait for each other for ever
     * @throws InterruptedException if the thread is interrupted before that
     */
    public void upgrade() throws InterruptedException {
        upgrading().await();
    }

    /** As {@link #upgrade}, without waiting. To cancel the future gives the upgrade up. */
    public CompletableFuture<Upgrade> upgradeAsync() {
        return upgrading().async();
    }

    private Request<Upgrade> upgrading() {
        use();
        return Request.of(client, Map.of("op", "upgrade", "guard", number), granted -> {
            Map<String, Object> upgraded = Shape.map(granted);
            drew(Shape.number(upgraded.get("token")));
            return new Upgrade(this, Shape.number(upgraded.get("upgrade")));
        }, upgraded -> check(), Upgrade::decline);
    }

    void decline(Upgrade upgrade) {
        Map<String, Object> operation = Map.of("op", "decline_upgrade", "guard", number, "upgrade", upgrade.number());
        Request.of(client, operation, done -> null).async();
    }

    /**
     * Turns a writer into an upgradeable or a plain reader, or an upgradeable into a plain reader: others may enter beside
     * it. It keeps its token. After an error the guard is the lesser reader all the same, and the store is told so until it
     * confirms.
     *
     * @param mode {@link Mode#UPGRADEABLE} or {@link Mode#READ}
     */
    public void downgrade(Mode mode) {
        downgrading(mode).get();
    }

    /** As {@link #downgrade}, without waiting. */
    public CompletableFuture<Void> downgradeAsync(Mode mode) {
        return downgrading(mode).async();
    }

    private Request<Void> downgrading(Mode mode) {
        use();
        Map<String, Object> operation = Map.of("op", "downgrade", "guard", number, "mode", mode.toString());
        return Request.of(client, operation, done -> null);
    }

    /**
     * Frees the lock, unless that was done before. In a {@code try} whose body has thrown, what is thrown here is only
     * suppressed: it never hides the body's own exception.
     *
     * @throws LockLostException if the lock had been lost: what the body did last was not protected
     */
    @Override
    public void close() {
        if (givesBack()) {
            releasing().get().check();
        }
    }
}
