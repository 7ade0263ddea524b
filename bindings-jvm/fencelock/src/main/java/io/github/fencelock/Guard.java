package io.github.fencelock;

import java.lang.ref.Reference;
import java.time.Duration;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicReference;

/**
 * The local proof that a lock is held: one, several as one, or an office. Use it in a {@code try}: leaving that gives the lock back.
 *
 * <pre>{@code
 * try (Client client = Fencelock.connect("memory:");
 *      Guard guard = client.lock("orders:42").acquire(Duration.ofSeconds(5))) {
 *     System.out.println("charging order 42 with token " + guard.token());
 * }
 * }</pre>
 *
 * <p>It knows its deadline on a clock that runs through suspend, counted from before the request that won it was sent, and
 * stops claiming to be held before the store may give the lock to another. It belongs to whoever has this object, not to a
 * thread. One that the program has used, if only by {@link #token}, stays until it is given back or lost, its client closes, or the
 * process ends. One that is collected before any use is released then, with a warning in the log {@code fencelock}.
 */
public class Guard implements AutoCloseable {
    final Client client;
    final long number;
    private final String name;
    private final long token;
    private final Map<String, Long> tokens = new LinkedHashMap<>();
    private final Leftover leftover;
    private volatile boolean used;
    private final AtomicReference<CompletableFuture<Void>> lost = new AtomicReference<>();

    Guard(Client client, String name, Map<String, Object> granted) {
        this.client = client;
        this.name = name;
        this.number = Shape.number(granted.get("guard"));
        this.token = Shape.number(granted.get("token"));
        Object several = granted.getOrDefault("tokens", Map.of(name, token));
        Shape.map(several).forEach((one, each) -> tokens.put(one, Shape.number(each)));
        long of = client.number;
        long guard = number;
        this.leftover = Leftover.of(this, () -> Natives.forget(of, guard), client.leftover,
            "`" + name + "`, held with token " + token + ", was collected before it was given back; close it");
    }

    /** The program uses it: no collection ends it from here on. */
    final void use() {
        if (!used) {
            used = true;
            if (!leftover.settled()) {
                InUse.keep(this);
            }
        }
    }

    /** Whether it is held; no use by the program. */
    final boolean stands() {
        boolean held = Natives.isHeld(client.number, number);
        Reference.reachabilityFence(this);
        return held;
    }

    /** The name; of several locks as one, all their names in order. */
    public final String name() {
        use();
        return name;
    }

    /**
     * The fencing token: a positive number under 2^53, larger than that of every earlier grant of the name (readers that enter
     * a quorum at once may share one). Hand it to the resource with every write, and let that refuse older ones. Of several
     * locks as one it is the first one's.
     */
    public final long token() {
        use();
        return token;
    }

    /** The fencing token of each lock, by name: of several as one each resource is handed its own. */
    public final Map<String, Long> tokens() {
        use();
        return Collections.unmodifiableMap(tokens);
    }

    /**
     * Whether the lock may be relied on at this very moment. Compares the clock at every call, so it is right also after the
     * process was frozen. False once it was given back.
     */
    public final boolean isHeld() {
        use();
        return stands();
    }

    /** How long it may still be relied on if it were not renewed any more; zero once it is lost or given back. */
    public final Duration remaining() {
        use();
        double millis = Natives.remaining(client.number, number);
        Reference.reachabilityFence(this);
        return Shape.time(millis);
    }

    /**
     * Nothing while the lock may be relied on: to be called before a write.
     *
     * @throws LockLostException if it was lost
     * @throws LockNotHeldException if it was given back before
     */
    public final void check() {
        use();
        confirm();
    }

    private void confirm() {
        byte[] error = Natives.check(client.number, number);
        Reference.reachabilityFence(this);
        if (error != null) {
            throw FencelockException.of(Shape.map(Parcel.read(error)));
        }
    }

    /**
     * For code that passes holds on to a caller that may go on long after the grant, as a coroutine: what was lost meanwhile is
     * taken back. Unlike {@link #check} it does not count as a use.
     *
     * @throws LockLostException if it was lost
     */
    public final void begin() {
        try {
            confirm();
        } catch (FencelockException lost) {
            decline();
            throw lost;
        }
    }

    /**
     * Pushes the end of the lease to at least now + {@code ttl}, which is its length from now on. Never shortens it.
     *
     * @throws LockLostException if it was lost
     */
    public final void extend(Duration ttl) {
        extension(ttl).get();
    }

    /** As {@link #extend}, without waiting. */
    public final CompletableFuture<Void> extendAsync(Duration ttl) {
        return extension(ttl).async();
    }

    private Request<Void> extension(Duration ttl) {
        use();
        return Request.of(client, Map.of("op", "extend", "guard", number, "ttl", ttl), done -> null);
    }

    /** The end of a hold, and the future that completes if that is its loss. */
    private record Loss(Guard guard, CompletableFuture<Void> told) implements Drain.Pending {
        @Override
        public void deliver(Answer answer) {
            InUse.letGo(guard);
            if (answer.well()) {
                guard.excuse();
                Callbacks.execute(() -> told.complete(null));
            }
        }

        @Override
        public boolean lasts() {
            return true;
        }
    }

    /**
     * Completes when the lock is lost; never, if it is given back before that. What hangs on it runs on a thread of
     * fencelock's callbacks.
     */
    public final CompletableFuture<Void> lost() {
        use();
        CompletableFuture<Void> made = new CompletableFuture<>();
        if (lost.compareAndSet(null, made)) {
            Drain.submit(client, Map.of("op", "lost", "guard", number), new Loss(this, made));
        }
        return lost.get().copy();
    }

    /**
     * Runs {@code action} once if the lock is lost; not if it is given back.
     */
    public final void onLost(Runnable action) {
        lost().thenRun(() -> Callbacks.execute(action));
    }

    /** Its collection is no mistake of the program's. */
    final void excuse() {
        leftover.excuse();
    }

    /**
     * Gives it back, waits for the store's answer and tells how that went. An interrupt is kept for later. A run of a job has failed
     * then.
     *
     * @throws LockNotHeldException if it was given back before
     */
    public final Released release() {
        return ending(false).get();
    }

    /** As {@link #release}, without waiting: the lock is freed whatever becomes of the future. */
    public final CompletableFuture<Released> releaseAsync() {
        return ending(false).async();
    }

    /** Gives it back; a run of a job with how it went. */
    final Request<Released> ending(boolean succeeded) {
        givesBack();
        return Request.of(client, Map.of("op", "release", "guard", number, "succeeded", succeeded), Released::of);
    }

    /** The core is to give this back; whether nobody has asked it to before. */
    final boolean givesBack() {
        boolean first = leftover.settle();
        InUse.letGo(this);
        return first;
    }

    /**
     * Lets another process go on with the hold: answers a text that {@link Client#adopt} makes the guard of, once, within the lease,
     * which begins anew. From then on this guard is given back, and the lock stays held. The text is a secret: whoever has it has
     * the lock. On an error the lock is freed.
     *
     * @throws UnsupportedException where a hold lives with its client's session (etcd, ZooKeeper, locks of database sessions), on a
     *     quorum, in the layout of another library, and for a lock of a scope
     */
    public final String transfer() {
        givesBack();
        return transferring().get();
    }

    /** As {@link #transfer}, without waiting. */
    public final CompletableFuture<String> transferAsync() {
        givesBack();
        return transferring().async();
    }

    private Request<String> transferring() {
        return Request.of(client, Map.of("op", "transfer", "guard", number), String.class::cast);
    }

    /**
     * Takes it back as if it had not been asked for, without waiting: for whoever was granted it and cannot use it any more.
     * A run of a job is left to others, instead of having failed.
     */
    public final void decline() {
        givesBack();
        Natives.decline(client.number, number);
    }

    /**
     * Gives it back, unless that was done before. In a {@code try} whose body has thrown, what is thrown here is only suppressed: it
     * never hides the body's own exception.
     *
     * @throws LockLostException if the lock had been lost: what the body did last was not protected
     */
    @Override
    public final void close() {
        if (givesBack()) {
            ending(false).get().check(this);
        }
    }

    /** Name and token. */
    @Override
    public final String toString() {
        return getClass().getSimpleName() + "(" + name + ", token " + token + ")";
    }
}
