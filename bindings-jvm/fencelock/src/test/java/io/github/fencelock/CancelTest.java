package io.github.fencelock;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;
import java.util.function.Function;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Operations that are interrupted or cancelled, at random moments too, leave nothing. */
final class CancelTest {
    private static final String STORES = "io.github.fencelock.Stores#all";
    /** Cancels it after a moment, or is served. */
    private static <T> boolean cancelled(Storm.Sailor sailor, CompletableFuture<T> future, Consumer<T> served) {
        sailor.rest();
        boolean cut =
            sailor.dice.nextBoolean() ? future.cancel(true) : future.completeExceptionally(new ExecutionException(null));
        if (!cut) {
            served.accept(future.join());
        }
        return cut;
    }

    /** The same with whatever is asked under a guard, which stays as it is. */
    private static <T> boolean cancelled(Storm.Sailor sailor, Guard guard, Function<Guard, CompletableFuture<T>> asked) {
        try (guard) {
            boolean cut = cancelled(sailor, asked.apply(guard), done -> {});
            assertTrue(guard.isHeld());
            return cut;
        }
    }

    /** An end is told whatever becomes of the future: when the storm is over all is free. */
    private static boolean ended(Storm.Sailor sailor, CompletableFuture<Released> end) {
        return cancelled(sailor, end, released -> assertEquals(Released.RELEASED, released));
    }

    /** A run's, too: then the next one starts. */
    private static boolean ended(Storm.Sailor sailor, Function<Run, CompletableFuture<Released>> end) {
        boolean cut = ended(sailor, end.apply((Run) sailor.nextRun().start()));
        sailor.nextRun();
        sailor.runs();
        return cut;
    }

    private static boolean connected(Storm.Sailor sailor, String url) {
        return cancelled(sailor, Fencelock.connectAsync(url), client -> {
            client.lock(sailor.name("")).acquireAsync().thenAccept(Guard::decline);
            client.closeAsync().cancel(sailor.dice.nextBoolean());
        });
    }

    @ParameterizedTest
    @MethodSource(STORES)
    void cancelledFuturesLeaveNothing(String url) throws Exception {
        Map<String, Storm.Turn> turns = new LinkedHashMap<>();
        turns.put("acquire", sailor -> cancelled(sailor, sailor.lock().acquireAsync(), Guard::close));
        turns.put("acquire for a while",
            sailor -> cancelled(sailor, sailor.lock().acquireAsync(Duration.ofMinutes(1)), Guard::close));
        turns.put("try", sailor -> cancelled(sailor, sailor.lock().tryAcquireAsync(), won -> won.ifPresent(Guard::close)));
        turns.put("all", sailor -> cancelled(sailor, sailor.all().acquireAsync(), Guard::close));
        turns.put("try all", sailor -> cancelled(sailor, sailor.all().tryAcquireAsync(), won -> won.ifPresent(Guard::close)));
        turns.put("campaign", sailor -> cancelled(sailor, sailor.election().campaignAsync(), Guard::close));
        turns.put("try campaign",
            sailor -> cancelled(sailor, sailor.election().tryCampaignAsync(), won -> won.ifPresent(Guard::close)));
        turns.put("observe", sailor -> cancelled(sailor, sailor.election().observe().changedAsync(), leader -> {}));
        turns.put("read", sailor -> cancelled(sailor, sailor.reader().acquireAsync(), Guard::close));
        turns.put("write", sailor -> cancelled(sailor, sailor.writer().acquireAsync(), Guard::close));
        turns.put("permits", sailor -> cancelled(sailor, sailor.permits().acquireAsync(), Guard::close));
        turns.put("scope", sailor -> {
            Lock lock = sailor.scoped();
            try (Guard outer = lock.acquire()) {
                boolean cut = cancelled(sailor, lock.acquireAsync(), Guard::close);
                assertTrue(outer.isHeld());
                return cut;
            }
        });
        turns.put("run", sailor -> {
            CompletableFuture<Start> asked = sailor.nextRun().startAsync();
            boolean cut = cancelled(sailor, asked, due -> assertEquals(Released.RELEASED, ((Run) due).succeed()));
            if (cut) {
                sailor.runs();
            }
            return cut;
        });
        turns.put("extend",
            sailor -> cancelled(sailor, sailor.lock().acquire(), guard -> guard.extendAsync(Duration.ofMinutes(2))));
        turns.put("lost",
            sailor -> cancelled(sailor, sailor.lock().acquire(), guard -> guard.lost().orTimeout(1, TimeUnit.MINUTES)));
        turns.put("release", sailor -> ended(sailor, sailor.lock().acquire().releaseAsync()));
        turns.put("resign", sailor -> ended(sailor, sailor.election().campaign().releaseAsync()));
        turns.put("succeed", sailor -> ended(sailor, Run::succeedAsync));
        turns.put("fail", sailor -> ended(sailor, Run::failAsync));
        turns.put("update", sailor -> cancelled(sailor, sailor.value().updateAsync(seen -> 1L), done -> {}));
        turns.put("inspect", sailor -> cancelled(sailor, sailor.lock().inspectAsync(), done -> {}));
        turns.put("names", sailor -> cancelled(sailor, sailor.either().namesAsync(""), done -> {}));
        turns.put("connect", sailor -> connected(sailor, url));
        new Storm(url, turns).rages();
    }

    /** Interrupts this thread after a moment; what is answered takes that back, and tells whether it was not too late. */
    private static BooleanSupplier interruptSoon(Storm.Sailor sailor, ScheduledExecutorService clock) {
        Thread me = Thread.currentThread();
        AtomicBoolean due = new AtomicBoolean(true);
        Runnable interrupt = () -> {
            if (due.getAndSet(false)) {
                me.interrupt();
            }
        };
        clock.schedule(interrupt, sailor.moment(), TimeUnit.MICROSECONDS);
        return () -> due.getAndSet(false);
    }

    /** Interrupts a call after a moment, or is served; whether it was cut short. */
    private static boolean interrupted(Storm.Sailor sailor, ScheduledExecutorService clock, Callable<AutoCloseable> call)
        throws Exception {
        BooleanSupplier takenBack = interruptSoon(sailor, clock);
        AutoCloseable served = null;
        try {
            served = call.call();
        } catch (InterruptedException interrupted) {
            assertFalse(Thread.interrupted());
            return true;
        }
        served.close();
        if (!takenBack.getAsBoolean()) {
            // It is on its way, and must not meet the next turn.
            Wait.until("the interrupt is there", Thread::interrupted);
        }
        return false;
    }

    /** A call that only waits for the store's answer is carried out all the same and keeps the interrupt; whether there was one by then. */
    private static boolean kept(Storm.Sailor sailor, ScheduledExecutorService clock, Asked asked) throws Exception {
        BooleanSupplier takenBack = interruptSoon(sailor, clock);
        asked.ask();
        boolean there = Thread.interrupted();
        if (!there && !takenBack.getAsBoolean()) {
            Wait.until("the interrupt is there", Thread::interrupted);
        }
        return there;
    }

    private interface Asked {
        void ask() throws InterruptedException;
    }

    private static AutoCloseable locked(java.util.concurrent.locks.Lock lock, boolean won) {
        return won ? lock::unlock : () -> {};
    }

    @ParameterizedTest
    @MethodSource(STORES)
    void interruptedThreadsLeaveNothing(String url) throws Exception {
        ScheduledExecutorService clock = Executors.newSingleThreadScheduledExecutor();
        Map<String, Storm.Turn> turns = new LinkedHashMap<>();
        turns.put("acquire", sailor -> interrupted(sailor, clock, sailor.lock()::acquire));
        turns.put("acquire for a while",
            sailor -> interrupted(sailor, clock, () -> sailor.lock().acquire(Duration.ofMinutes(1))));
        turns.put("withLock", sailor -> interrupted(sailor, clock, () -> sailor.lock().withLock(guard -> () -> {})));
        turns.put("all", sailor -> interrupted(sailor, clock, sailor.all()::acquire));
        turns.put("campaign", sailor -> interrupted(sailor, clock, sailor.election()::campaign));
        turns.put("observe", sailor -> interrupted(sailor, clock, () -> {
            Observer observer = sailor.election().observe();
            observer.changed();
            observer.changed();
            return () -> {};
        }));
        turns.put("read", sailor -> interrupted(sailor, clock, sailor.reader()::acquire));
        turns.put("write", sailor -> interrupted(sailor, clock, sailor.writer()::acquire));
        turns.put("permits", sailor -> interrupted(sailor, clock, sailor.permits()::acquire));
        turns.put("scope", sailor -> interrupted(sailor, clock, () -> {
            Lock lock = sailor.scoped();
            try (Guard outer = lock.acquire()) {
                return lock.acquire();
            }
        }));
        turns.put("lockInterruptibly", sailor -> interrupted(sailor, clock, () -> {
            java.util.concurrent.locks.Lock lock = sailor.lock().asLock();
            lock.lockInterruptibly();
            return locked(lock, true);
        }));
        turns.put("tryLock", sailor -> interrupted(sailor, clock, () -> {
            java.util.concurrent.locks.Lock lock = sailor.lock().asLock();
            return locked(lock, lock.tryLock(1, TimeUnit.MILLISECONDS));
        }));
        turns.put("connect", sailor -> kept(sailor, clock, () -> Fencelock.connect(url).close()));
        turns.put("try", sailor -> kept(sailor, clock, () -> sailor.lock().tryAcquire().ifPresent(Guard::close)));
        turns.put("run", sailor -> kept(sailor, clock, () -> ((Run) sailor.nextRun().start()).succeed().check()));
        turns.put("extend and release", sailor -> {
            Guard guard = sailor.mine().acquire();
            return kept(sailor, clock, () -> {
                guard.extend(Duration.ofMinutes(2));
                guard.close();
            });
        });
        new Storm(url, turns).rages();
        clock.shutdown();
    }

    @Test
    void whoeverIsInterruptedBeforeDoesNotAsk() {
        try (Client client = Fencelock.connect("memory:")) {
            Thread.currentThread().interrupt();
            assertThrows(InterruptedException.class, () -> client.lock("x").acquire());
            Wait.atRest(client, "x");
        }
    }

    @Test
    void aCloseThatIsCancelledClosesAllTheSame() throws Exception {
        Client client = Fencelock.connect(Stores.redis().url());
        try (Client witness = Fencelock.connect(Stores.redis().url())) {
            Lock lock = client.lock(Stores.name());
            Guard guard = lock.acquire();
            client.closeAsync().cancel(true);
            Wait.until("the lock is free", () -> witness.lock(lock.name()).inspect().holders().isEmpty());
            assertThrows(ClosedException.class, lock::tryAcquire);
            assertFalse(guard.isHeld());
        }
    }

    @Test
    void aFutureThatTimesOutGivesUp() throws Exception {
        try (Client client = Fencelock.connect("memory:timeout"); Guard guard = client.lock("x").acquire()) {
            CompletableFuture<Guard> waits = client.lock("x").acquireAsync().orTimeout(50, TimeUnit.MILLISECONDS);
            ExecutionException over = assertThrows(ExecutionException.class, () -> waits.get(10, TimeUnit.SECONDS));
            assertTrue(over.getCause() instanceof java.util.concurrent.TimeoutException);
            Wait.until("it does not wait any more", () -> client.stats().running() == 0);
            assertTrue(client.lock("x").inspect().waiters().isEmpty());
            assertTrue(guard.isHeld());
        }
    }

    @Test
    void whatHangsOnAFutureRunsOnNoThreadOfTheCore() throws Exception {
        try (Client client = Fencelock.connect("memory:callbacks")) {
            Guard guard = client.lock("x").acquire();
            CompletableFuture<String> thread =
                client.lock("x").acquireAsync().thenApply(next -> {
                    next.close();
                    return Thread.currentThread().getName();
                });
            guard.close();
            assertTrue(thread.get(10, TimeUnit.SECONDS).startsWith("fencelock-callbacks"), thread.get());
            try (Guard other = client.lock("x").acquire()) {
                CompletableFuture<Guard> cancelled = client.lock("x").acquireAsync();
                cancelled.cancel(true);
                assertThrows(CancellationException.class, cancelled::join);
            }
            Wait.atRest(client, "x");
        }
    }
}
