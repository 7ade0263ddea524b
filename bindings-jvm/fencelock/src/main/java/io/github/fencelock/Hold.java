package io.github.fencelock;

import java.lang.ref.Reference;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;

/**
 * The local proof that something is held: a lock by a {@link Guard}, an office by a {@link Leadership}, the run of a job by a
 * {@link Run}.
 *
 * <p>It knows its deadline on a clock that runs through suspend, counted from before the request that won it was sent, and
 * stops claiming to be held before the store may give the lock to another. It belongs to whoever has this object, not to a
 * thread. One that is collected without having been given back is released then, with a warning in the log of
 * {@code io.github.fencelock}: do not count on it, close it.
 */
public abstract sealed class Hold implements AutoCloseable permits Guard, Leadership, Run {
    final Client client;
    final long number;
    private final String name;
    private final AtomicLong token;
    private final Leftover leftover;
    private final AtomicReference<CompletableFuture<Void>> lost = new AtomicReference<>();

    Hold(Client client, String name, Map<String, Object> granted) {
        this.client = client;
        this.name = name;
        this.number = Shape.number(granted.get("guard"));
        this.token = new AtomicLong(Shape.number(granted.get("token")));
        long of = client.number;
        long guard = number;
        this.leftover = Leftover.of(this, () -> Natives.forget(of, guard),
            "`" + name + "`, held with token " + token + ", was collected before it was given back; close it");
    }

    /** The name; of several locks as one, all their names in order. */
    public final String name() {
        return name;
    }

    /**
     * The fencing token: a positive number under 2^53, larger than that of every earlier grant of the name (readers that enter
     * a quorum at once may share one). Hand it to the resource with every write, and let that refuse older ones. Of several
     * locks as one it is the first one's.
     */
    public final long token() {
        return token.get();
    }

    /** This token was drawn with it since: answers may come in any order. */
    final void drew(long drawn) {
        token.accumulateAndGet(drawn, Math::max);
    }

    /**
     * Whether the lock may be relied on at this very moment. Compares the clock at every call, so it is right also after the
     * process was frozen. False once it was given back.
     */
    public final boolean isHeld() {
        boolean held = Natives.isHeld(client.number, number);
        Reference.reachabilityFence(this);
        return held;
    }

    /** How long it may still be relied on if it were not renewed any more; zero once it is lost or given back. */
    public final Duration remaining() {
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
        byte[] error = Natives.check(client.number, number);
        Reference.reachabilityFence(this);
        if (error != null) {
            throw FencelockException.of(Shape.map(Parcel.read(error)));
        }
    }

    /** Whoever waited hears of it only now: what was lost meanwhile is not begun, but taken back. */
    final void begin() {
        try {
            check();
        } catch (FencelockException lost) {
            decline();
            throw lost;
        }
    }

    /**
     * Pushes the end of the lease to at least now + {@code ttl}, which is its length from now on. Never shortens it. A run
     * of a job cannot be extended.
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
        return Request.of(client, Map.of("op", "extend", "guard", number, "ttl", ttl), done -> null);
    }

    /** Whoever is to be told of the loss, as long as the lock is held. */
    private record Loss(CompletableFuture<Void> told) implements Drain.Pending {
        @Override
        public void deliver(Answer answer) {
            if (answer.well()) {
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
        CompletableFuture<Void> made = new CompletableFuture<>();
        if (lost.compareAndSet(null, made)) {
            Drain.submit(client, Map.of("op", "lost", "guard", number), new Loss(made));
        }
        return lost.get().copy();
    }

    /**
     * Runs {@code action} once if the lock is lost; not if it is given back. The action must not refer to this object, which
     * could then never be collected.
     */
    public final void onLost(Runnable action) {
        lost().thenRun(() -> Callbacks.execute(action));
    }

    /** A request that gives this back, however it is answered. */
    final Request<Released> giving(Map<String, Object> operation) {
        return Request.of(client, operation, Released::of);
    }

    /** The core is to give this back; whether nobody has asked it to before. */
    final boolean givesBack() {
        return leftover.settle();
    }

    /**
     * Takes it back as if it had not been asked for, without waiting: for whoever was granted it and cannot use it any more.
     * A run of a job is left to others, instead of having failed.
     */
    public final void decline() {
        leftover.settle();
        Natives.decline(client.number, number);
    }

    /**
     * Gives it back, unless that was done before.
     *
     * @throws LockLostException if it had been lost
     */
    @Override
    public abstract void close();

    /** Name and token. */
    @Override
    public final String toString() {
        return getClass().getSimpleName() + "(" + name + ", token " + token + ")";
    }
}
