package io.github.fencelock;

import java.lang.ref.Reference;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.function.LongFunction;

/**
 * A connection to one store, made by {@link Fencelock#connect}: it hands out locks and keeps them alive. Any number of
 * threads may share it.
 */
public final class Client implements AutoCloseable {
    final long number;
    final Leftover leftover;
    private final ThreadLocal<ThreadLock.Holdings> holdings =
        ThreadLocal.withInitial(() -> new ThreadLock.Holdings(this));

    static final String NO_NAME = "the name is null";

    Client(long number, ClientOptions options) {
        this.number = number;
        this.leftover = Leftover.of(this, () -> drop(number), "a client was collected before it was closed; close it");
        options.listener().ifPresent(listener -> Events.listen(number, listener));
    }

    private static void drop(long number) {
        Events.forget(number);
        Natives.drop(number);
    }

    /** Nobody has wanted it. */
    void decline() {
        leftover.settle();
        drop(number);
    }

    /** The holds that each thread has by {@link Lock#asLock}. */
    ThreadLocal<ThreadLock.Holdings> holdings() {
        return holdings;
    }

    /**
     * A lock by name: 1 to 512 bytes of UTF-8 without control characters, not beginning with {@code fencelock:}. The same name is
     * the same lock in every language.
     */
    public Lock lock(String name) {
        return Lock.of(this, name, Map.of());
    }

    /**
     * The reading side of a read-write lock: any number of readers, and no writer beside them. A writer that waits is not
     * passed by new readers.
     */
    public Lock readLock(String name) {
        return in(Mode.READ, name);
    }

    /** The writing side of a read-write lock: nobody beside it. */
    public Lock writeLock(String name) {
        return in(Mode.WRITE, name);
    }

    private Lock in(Mode mode, String name) {
        return Lock.of(this, name, Map.of("mode", mode.toString()));
    }

    /**
     * A semaphore: at most {@code limit} holders at once. Every acquire takes one permit, or as many as the option
     * {@code permits} says. Those of a holder that died come back when its lease has ended. Clients may ask with different limits, each is served by its own.
     */
    public Lock semaphore(String name, int limit) {
        return Lock.of(this, name, Map.of("mode", Mode.PERMIT.toString(), "permits", limit));
    }

    /** Several mutexes as one: all or nothing, in a global order. */
    public All all(String... names) {
        for (String name : names) Objects.requireNonNull(name, NO_NAME);
        return new All(this, List.of(names), Map.of());
    }

    /** A new scope: whoever holds a lock in it may enter again. */
    public Scope scope() {
        return new Scope(this);
    }

    /** A mutex that may be entered again through what is returned here: a lock in a {@link #scope} of its own. */
    public Lock reentrant(String name) {
        return scope().lock(name);
    }

    /** An election: one leader at a time, the next one in order. */
    public Election election(String name) {
        return new Election(this, Objects.requireNonNull(name, NO_NAME), Map.of());
    }

    /** A scheduled job: at most one run in each {@code period} (10 ms or longer), whoever asks for it. */
    public Job job(String name, Duration period) {
        Objects.requireNonNull(period, "the period is null");
        return new Job(this, Objects.requireNonNull(name, NO_NAME), Map.of("period", period), null, Map.of());
    }

    /**
     * A scheduled job: at most one run for each time of a cron expression in a time zone, whoever asks for it.
     *
     * <pre>{@code client.job("cleanup", "0 3 * * *", "Europe/Berlin")}</pre>
     *
     * @param cron five fields, as in a crontab: minute, hour, day of month, month and day of week
     * @param timezone a name of the IANA database, {@code UTC} for instance
     */
    public Job job(String name, String cron, String timezone) {
        Objects.requireNonNull(cron, "the cron expression is null");
        Objects.requireNonNull(timezone, "the time zone is null; for UTC give \"UTC\"");
        Map<String, Object> times = Map.of("cron", cron, "timezone", timezone);
        return new Job(this, Objects.requireNonNull(name, NO_NAME), times, null, Map.of());
    }

    /** A value by name that is replaced only if nobody was faster. */
    public Versioned version(String name) {
        return new Versioned(this, Objects.requireNonNull(name, NO_NAME), Map.of());
    }

    /** Writes of keys on this client's Redis server that refuse stale tokens. */
    public Gate gate() {
        return new Gate(this);
    }

    /** The names of the locks the store knows, in order, as {@link #lock} takes them. An empty prefix: all. */
    public List<String> names(String prefix) {
        return listing(prefix).get();
    }

    /** As {@link #names}, as a future. */
    public CompletableFuture<List<String>> namesAsync(String prefix) {
        return listing(prefix).async();
    }

    private Request<List<String>> listing(String prefix) {
        Objects.requireNonNull(prefix, "the prefix is null; for all names give \"\"");
        return Request.of(this, Map.of("op", "names", "prefix", prefix), Shape::texts);
    }

    /**
     * The guard of a hold that another process has let go of by {@link Guard#transfer}, with its token.
     *
     * @throws LockNotHeldException if the text was used before, is too old or of another store
     * @throws InvalidArgumentException if it is no such text
     */
    public Guard adopt(String text) {
        return adopting(text).get();
    }

    /** As {@link #adopt}, as a future. */
    public CompletableFuture<Guard> adoptAsync(String text) {
        return adopting(text).async();
    }

    private Request<Guard> adopting(String text) {
        Objects.requireNonNull(text, "the text is null");
        return Request.holding(this, Map.of("op", "adopt", "text", text), granted ->
            new Guard(this, (String) granted.get("name"), granted));
    }

    /**
     * Ends every hold of a lock, a read-write lock or a semaphore; for holders that hang. Answers the holds that it ended. The next
     * waiter is granted, with a greater token. A holder finds the loss with its next renewal, after a third of its lease at the
     * latest; the fence refuses what it writes meanwhile. {@code reason} goes into the event and the log.
     *
     * @throws LockNotHeldException if nobody holds it
     * @throws UnsupportedException if another library or a session of a database server holds it; nothing has changed
     */
    public List<LockState.Holder> breakLock(String name, String reason) {
        return breaking(name, null, reason).get();
    }

    /** As {@link #breakLock}, as a future. */
    public CompletableFuture<List<LockState.Holder>> breakLockAsync(String name, String reason) {
        return breaking(name, null, reason).async();
    }

    /** As {@link #breakLock}, but ends only the holds with this token: one permit of a semaphore, for instance. */
    public List<LockState.Holder> breakHold(String name, long token, String reason) {
        return breaking(name, token, reason).get();
    }

    /** As {@link #breakHold}, as a future. */
    public CompletableFuture<List<LockState.Holder>> breakHoldAsync(String name, long token, String reason) {
        return breaking(name, token, reason).async();
    }

    private Request<List<LockState.Holder>> breaking(String name, Long token, String reason) {
        Objects.requireNonNull(name, NO_NAME);
        Objects.requireNonNull(reason, "the reason is null");
        Map<String, Object> all = Map.of("op", "break_lock", "name", name, "reason", reason);
        Map<String, Object> operation = new HashMap<>(all);
        if (token != null) {
            operation.put("token", token);
        }
        return Request.of(this, operation, LockState::holders);
    }

    /** Asks the store for nothing, and answers how long that took; for health checks. It fails as any request does, within {@code timeout}. */
    public Duration ping() {
        return pinging().get();
    }

    /** As {@link #ping}, as a future. */
    public CompletableFuture<Duration> pingAsync() {
        return pinging().async();
    }

    private Request<Duration> pinging() {
        return Request.of(this, Map.of("op", "ping"), Shape::time);
    }

    /** The abilities of this store and the failures that this configuration survives, in words. */
    public Guarantees guarantees() {
        return new Guarantees(look(Natives::guarantees));
    }

    /** The numbers of operations, guards and locks that this client carries at the moment; all 0 at rest. */
    public Stats stats() {
        return new Stats(look(Natives::load));
    }

    private Map<String, Object> look(LongFunction<byte[]> at) {
        byte[] seen = at.apply(number);
        Reference.reachabilityFence(this);
        return Shape.map(Parcel.read(seen));
    }

    /**
     * Refuses new acquires, gives up those under way, frees what is held (guards that still live are lost from now on), waits
     * at most two seconds until the store has confirmed all that, and disconnects. To close it again does nothing.
     */
    @Override
    public void close() {
        leftover.excuse();
        closing().get();
    }

    /** As {@link #close}, without waiting: the client closes whatever becomes of the future. */
    public CompletableFuture<Void> closeAsync() {
        leftover.excuse();
        // A future of its own: cancelling the operation's would leave the client open, with all its locks.
        CompletableFuture<Void> told = new CompletableFuture<>();
        closing().async().whenComplete((done, error) -> {
            if (error == null) {
                told.complete(null);
            } else {
                told.completeExceptionally(error);
            }
        });
        return told;
    }

    private Request<Void> closing() {
        return Request.of(this, Map.of("op", "close"), closed -> {
            Events.forget(number);
            InUse.letGo(this);
            return null;
        });
    }

    /** Its store. */
    @Override
    public String toString() {
        return "Client(" + guarantees().store() + ")";
    }
}
