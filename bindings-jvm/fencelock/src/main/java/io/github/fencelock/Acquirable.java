package io.github.fencelock;

import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;

/**
 * Something that can be acquired: a {@link Lock}, several as one ({@link All}), an {@link Election}. It asks the store nothing before an acquire;
 * a wrong name or option makes the acquire fail with {@link InvalidArgumentException}.
 *
 * @param <T> itself
 */
public abstract class Acquirable<T extends Acquirable<T>> implements WaitOptions<T> {
    final Client client;
    private final Map<String, Object> options;

    Acquirable(Client client, Map<String, Object> options) {
        this.client = client;
        this.options = options;
    }

    /** The same with other options. */
    abstract T with(Map<String, Object> options);

    /** The operation that asks the core for it, without its options; {@code once} asks for a try. */
    abstract Map<String, Object> asking(boolean once);

    /** Its name as messages show it. */
    abstract String shown();

    @Override
    public final T option(String name, Object value) {
        return with(Options.with(options, name, value));
    }

    /**
     * Waits for the lock, for ever or as long as the option {@code wait} says.
     *
     * @throws InterruptedException if the thread is interrupted meanwhile: nothing is held, and nobody waits, then
     * @throws LockTimeoutException if the wait is over before the lock was granted
     * @throws LockLostException if the lease ended while this thread was stopped, before the call returned
     */
    public final Guard acquire() throws InterruptedException {
        return acquiring(options).await();
    }

    /**
     * Waits for the lock at most this long.
     *
     * @throws InterruptedException if the thread is interrupted meanwhile: nothing is held, and nobody waits, then
     * @throws LockTimeoutException if the wait is over before the lock was granted
     * @throws LockLostException if the lease ended while this thread was stopped, before the call returned
     */
    public final Guard acquire(Duration wait) throws InterruptedException {
        return acquiring(Options.with(options, "wait", wait)).await();
    }

    /**
     * As {@link #acquire()}, as a future. Cancelling it, or completing it in any other way, gives the acquire up and takes
     * back whatever it has won or queued.
     */
    public final CompletableFuture<Guard> acquireAsync() {
        return acquiring(options).async();
    }

    /** As {@link #acquire(Duration)}, as a future; see {@link #acquireAsync()}. */
    public final CompletableFuture<Guard> acquireAsync(Duration wait) {
        return acquiring(Options.with(options, "wait", wait)).async();
    }

    /**
     * Asks once: empty if somebody else holds the lock or waits for it.
     *
     * @throws LockLostException if the lease ended while this thread was stopped, before the call returned
     */
    public final Optional<Guard> tryAcquire() {
        return trying().get();
    }

    /**
     * Waits for the lock at most this long: empty if somebody else holds it all the while.
     *
     * @throws InterruptedException if the thread is interrupted meanwhile: nothing is held, and nobody waits, then
     * @throws LockLostException if the lease ended while this thread was stopped, before the call returned
     */
    public final Optional<Guard> tryAcquire(Duration wait) throws InterruptedException {
        return trying(wait).await();
    }

    /** As {@link #tryAcquire()}, as a future; see {@link #acquireAsync()}. */
    public final CompletableFuture<Optional<Guard>> tryAcquireAsync() {
        return trying().async();
    }

    /** As {@link #tryAcquire(Duration)}, as a future; see {@link #acquireAsync()}. */
    public final CompletableFuture<Optional<Guard>> tryAcquireAsync(Duration wait) {
        return trying(wait).async();
    }

    /**
     * Runs {@code body} under the lock and answers what it answers. It does not begin under a lock that is lost. The body
     * learns of a loss by {@link Guard#check} or {@link Guard#lost}; it is not interrupted.
     *
     * <pre>{@code
     * try (Client client = Fencelock.connect("memory:")) {
     *     long token = client.lock("orders:42").withLock(guard -> guard.token());
     *     assert token > 0;
     * }
     * }</pre>
     *
     * @param <R> what the body answers
     * @param <X> what the body throws
     * @throws X if the body does
     * @throws LockLostException if the lock was lost before the body's begin or end; suppressed if the body has thrown itself
     * @throws InterruptedException if the thread is interrupted while it waits for the lock
     */
    public final <R, X extends Exception> R withLock(Body<R, X> body) throws X, InterruptedException {
        Objects.requireNonNull(body, "the body is null");
        try (Guard guard = acquire()) {
            return body.run(guard);
        }
    }

    /**
     * The code that runs under a lock.
     *
     * @param <R> what it answers
     * @param <X> what it throws
     */
    @FunctionalInterface
    public interface Body<R, X extends Exception> {
        /** Does what has to be done, with the proof that the lock is held. */
        R run(Guard guard) throws X;
    }

    final Request<Guard> acquiring() {
        return acquiring(options);
    }

    final Request<Guard> acquiring(Duration wait) {
        return acquiring(Options.with(options, "wait", wait));
    }

    private Request<Guard> acquiring(Map<String, Object> options) {
        return Request.holding(client, operation(false, options), this::guard);
    }

    final Request<Optional<Guard>> trying() {
        return Request.trying(client, operation(true, options), this::guard);
    }

    private Request<Optional<Guard>> trying(Duration wait) {
        Map<String, Object> operation = operation(true, options);
        operation.putAll(Options.with(Map.of(), "wait", wait));
        return Request.trying(client, operation, this::guard);
    }

    private Guard guard(Map<String, Object> granted) {
        return new Guard(client, shown(), granted);
    }

    private Map<String, Object> operation(boolean once, Map<String, Object> options) {
        Map<String, Object> operation = new LinkedHashMap<>(asking(once));
        operation.put("options", options);
        return operation;
    }

    final Map<String, Object> options() {
        return options;
    }

    /** Its name and options. */
    @Override
    public final String toString() {
        return getClass().getSimpleName() + "(" + shown() + ", " + options + ")";
    }
}
