package io.github.fencelock;

import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Acquires that are interrupted or cancelled at random moments leave nothing. 500 a store; 5,000 with {@code FENCELOCK_FULL};
 * {@code FENCELOCK_SEED} repeats the choices of a run.
 */
final class CancelTest {
    private static final String STORES = "io.github.fencelock.Stores#all";
    private static final int LOCKS = 4;
    private static final int THREADS = 8;

    private static long seed() {
        String given = System.getenv("FENCELOCK_SEED");
        long seed = given == null ? System.nanoTime() : Long.parseLong(given);
        System.out.println("FENCELOCK_SEED=" + seed);
        return seed;
    }

    /** Runs {@code work} in threads of its own until enough was cut short, and looks at what is left. */
    private static void storm(String url, Turn work) throws Exception {
        String[] names = new String[LOCKS];
        java.util.Arrays.setAll(names, number -> Stores.name());
        AtomicInteger cut = new AtomicInteger();
        AtomicReference<Throwable> failure = new AtomicReference<>();
        long seed = seed();
        int enough = Wait.tenth(5_000);
        try (Client one = Fencelock.connect(url); Client other = Fencelock.connect(url)) {
            List<Thread> threads = new ArrayList<>();
            for (int number = 0; number < THREADS; number++) {
                Random dice = new Random(seed + number);
                Thread thread = new Thread(() -> {
                    try {
                        while (cut.get() < enough && failure.get() == null) {
                            Lock lock = (dice.nextBoolean() ? one : other).lock(names[dice.nextInt(LOCKS)])
                                .ttl(Duration.ofSeconds(20)).fair(dice.nextInt(4) > 0).local(dice.nextBoolean() ? 16 : 0);
                            if (work.cut(lock, dice)) {
                                cut.incrementAndGet();
                            }
                        }
                    } catch (Throwable error) {
                        failure.compareAndSet(null, error);
                    }
                });
                threads.add(thread);
                thread.start();
            }
            for (Thread thread : threads) {
                thread.join();
            }
            if (failure.get() != null) {
                throw new AssertionError(failure.get());
            }
            Wait.atRest(one, names);
            Wait.atRest(other);
        }
    }

    /** One acquire; whether it was cut short. */
    interface Turn {
        boolean cut(Lock lock, Random dice) throws Exception;
    }

    private static void rest(Random dice, int most) {
        LockSupport.parkNanos(dice.nextInt(most) * 1_000L);
    }

    @ParameterizedTest
    @MethodSource(STORES)
    void cancelledFuturesLeaveNothing(String url) throws Exception {
        storm(url, (lock, dice) -> {
            CompletableFuture<Guard> future = lock.acquireAsync();
            rest(dice, 3_000);
            boolean cut = dice.nextBoolean() ? future.cancel(true) : future.completeExceptionally(new ExecutionException(null));
            if (!cut) {
                future.join().close();
            }
            return cut;
        });
    }

    @ParameterizedTest
    @MethodSource(STORES)
    void interruptedThreadsLeaveNothing(String url) throws Exception {
        ScheduledExecutorService clock = Executors.newSingleThreadScheduledExecutor();
        storm(url, (lock, dice) -> {
            Thread me = Thread.currentThread();
            AtomicBoolean due = new AtomicBoolean(true);
            Runnable interrupt = () -> {
                if (due.getAndSet(false)) {
                    me.interrupt();
                }
            };
            clock.schedule(interrupt, dice.nextInt(3_000), TimeUnit.MICROSECONDS);
            Guard guard = null;
            try {
                guard = dice.nextBoolean() ? lock.acquire() : lock.acquire(Duration.ofSeconds(10));
            } catch (InterruptedException interrupted) {
                assertFalse(Thread.interrupted());
            }
            if (guard != null) {
                guard.close();
                if (!due.getAndSet(false)) {
                    // It is on its way, and must not meet the next turn.
                    Wait.until("the interrupt is there", Thread::interrupted);
                }
            }
            return guard == null;
        });
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
    void aFutureThatTimesOutGivesUp() throws Exception {
        try (Client client = Fencelock.connect("memory:timeout"); Guard guard = client.lock("x").acquire()) {
            CompletableFuture<Guard> waits = client.lock("x").acquireAsync().orTimeout(50, TimeUnit.MILLISECONDS);
            ExecutionException over = assertThrows(ExecutionException.class, () -> waits.get(10, TimeUnit.SECONDS));
            assertTrue(over.getCause() instanceof java.util.concurrent.TimeoutException);
            Wait.until("it does not wait any more", () -> client.load().running() == 0);
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
