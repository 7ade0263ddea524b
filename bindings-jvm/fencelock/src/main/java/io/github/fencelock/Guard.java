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
     * Lets another process go on with the hold: answers a text that {@link Client#adopt} makes the guard of, once, within the lease,
     * which begins anew. From then on this guard is given back, and the lock stays held. The text is a secret: whoever has it has
     * the lock. On an error the lock is freed.
     *
     * @throws UnsupportedException where a hold lives with its client's session (etcd, ZooKeeper, locks of database sessions), on a
     *     quorum, in the layout of another library, and for a lock of a scope
     */
    public String transfer() {
        givesBack();
        return transferring().get();
    }

    /** As {@link #transfer}, without waiting. */
    public CompletableFuture<String> transferAsync() {
        givesBack();
        return transferring().async();
    }

    private Request<String> transferring() {
        return Request.of(client, Map.of("op", "transfer", "guard", number), String.class::cast);
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
