package io.github.fencelock;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.Random;
import java.util.concurrent.Callable;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicIntegerArray;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Consumer;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Operations that are interrupted or cancelled at random moments leave nothing. 500 a store; 5,000 with {@code FENCELOCK_FULL};
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

    /** What one thread of a storm has: two clients, names that all threads share, dice and a job of its own. */
    private static final class Sailor {
        private final Client client;
        private final Client other;
        private final String[] names;
        private final Random dice;
        private final String job = Stores.name();
        private long instant = 1_000_000;

        Sailor(Client client, Client other, String[] names, long seed) {
            this.client = client;
            this.other = other;
            this.names = names;
            this.dice = new Random(seed);
        }

        private Client either() {
            return dice.nextBoolean() ? client : other;
        }

        private String name() {
            return names[dice.nextInt(names.length)];
        }

        private <T extends LockOptions<T>> T drawn(T of) {
            return of.ttl(Duration.ofSeconds(20)).fair(dice.nextInt(4) > 0).local(dice.nextBoolean() ? 16 : 0);
        }

        Lock lock() {
            return drawn(either().lock(name()));
        }

        All all() {
            return either().all(name(), name() + "-more").ttl(Duration.ofSeconds(20));
        }

        Election election() {
            return either().elect(name()).ttl(Duration.ofSeconds(20));
        }

        /** The readers' names are not those of the mutexes. */
        Lock reader() {
            return either().read(name() + "-read").ttl(Duration.ofSeconds(20));
        }

        Guard upgradeable() throws InterruptedException {
            return either().upgradeable(name() + "-read").ttl(Duration.ofSeconds(20)).acquire();
        }

        /** The job's next instant, as one of the clients asks for it. */
        Job nextRun() {
            instant += 60;
            return sameRun(either());
        }

        Job sameRun(Client asks) {
            return asks.job(job, Duration.ofMinutes(1)).at(Instant.ofEpochSecond(instant)).ttl(Duration.ofSeconds(20));
        }

        /** A run that was taken back is there for others, as if nobody had asked. */
        void runsAgain() {
            Optional<Run> again = Optional.empty();
            for (long end = System.nanoTime() + Wait.PATIENCE.toNanos(); again.isEmpty() && System.nanoTime() < end;) {
                again = sameRun(either()).start();
            }
            assertEquals(Released.RELEASED, again.orElseThrow(() -> new AssertionError("the run is gone")).succeed());
        }

        void rest() {
            LockSupport.parkNanos(dice.nextInt(3_000) * 1_000L);
        }
    }

    /** One operation; whether it was cut short. */
    private interface Turn {
        boolean cut(Sailor sailor) throws Exception;
    }

    /** Has threads do {@code turns} as the dice say until enough were cut short, each of them too; looks at what is left. */
    private static void storm(String url, List<Turn> turns) throws Exception {
        String[] names = new String[LOCKS];
        Arrays.setAll(names, number -> Stores.name());
        AtomicIntegerArray cuts = new AtomicIntegerArray(turns.size());
        AtomicInteger cut = new AtomicInteger();
        AtomicReference<Throwable> failure = new AtomicReference<>();
        long seed = seed();
        int enough = Wait.tenth(5_000);
        try (Client one = Fencelock.connect(url); Client other = Fencelock.connect(url)) {
            List<Thread> threads = new ArrayList<>();
            for (int number = 0; number < THREADS; number++) {
                Sailor sailor = new Sailor(one, other, names, seed + number);
                Thread thread = new Thread(() -> {
                    try {
                        while (cut.get() < enough && failure.get() == null) {
                            int drawn = sailor.dice.nextInt(turns.size());
                            if (turns.get(drawn).cut(sailor)) {
                                cuts.incrementAndGet(drawn);
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
            System.out.println(url.split(":")[0] + ": cut short " + cuts);
            for (int turn = 0; turn < turns.size(); turn++) {
                assertTrue(cuts.get(turn) > 0, cuts::toString);
            }
            Wait.atRest(one, Stream.of("", "-more", "-read").flatMap(end -> Arrays.stream(names).map(name -> name + end))
                .toArray(String[]::new));
            Wait.atRest(other);
        }
    }

    /** Cancels it after a moment, or is served. */
    private static <T> boolean cancelled(Sailor sailor, CompletableFuture<T> future, Consumer<T> served) {
        sailor.rest();
        boolean cut =
            sailor.dice.nextBoolean() ? future.cancel(true) : future.completeExceptionally(new ExecutionException(null));
        if (!cut) {
            served.accept(future.join());
        }
        return cut;
    }

    @ParameterizedTest
    @MethodSource(STORES)
    void cancelledFuturesLeaveNothing(String url) throws Exception {
        Turn run = sailor -> {
            CompletableFuture<Optional<Run>> asked = sailor.nextRun().startAsync();
            boolean cut = cancelled(sailor, asked, due -> assertEquals(Released.RELEASED, due.orElseThrow().succeed()));
            if (cut) {
                sailor.runsAgain();
            }
            return cut;
        };
        Turn upgrade = sailor -> {
            try (Guard reader = sailor.upgradeable()) {
                boolean cut = cancelled(sailor, reader.upgradeAsync(), done -> {});
                assertTrue(reader.isHeld());
                return cut;
            }
        };
        // The lock is freed whatever becomes of the future: at the end of the storm all are free.
        Turn release = sailor -> sailor.lock().acquire().releaseAsync().cancel(true);
        storm(url, List.of(
            sailor -> cancelled(sailor, sailor.lock().acquireAsync(), Guard::close),
            sailor -> cancelled(sailor, sailor.all().acquireAsync(), Guard::close),
            sailor -> cancelled(sailor, sailor.election().campaignAsync(), Leadership::close),
            sailor -> cancelled(sailor, sailor.reader().acquireAsync(), Guard::close),
            run, upgrade, release));
    }

    /** Interrupts a call after a moment, or is served; whether it was cut short. */
    private static boolean interrupted(Sailor sailor, ScheduledExecutorService clock, Callable<AutoCloseable> call)
        throws Exception {
        Thread me = Thread.currentThread();
        AtomicBoolean due = new AtomicBoolean(true);
        Runnable interrupt = () -> {
            if (due.getAndSet(false)) {
                me.interrupt();
            }
        };
        clock.schedule(interrupt, sailor.dice.nextInt(3_000), TimeUnit.MICROSECONDS);
        AutoCloseable served = null;
        try {
            served = call.call();
        } catch (InterruptedException interrupted) {
            assertFalse(Thread.interrupted());
            return true;
        }
        served.close();
        if (!due.getAndSet(false)) {
            // It is on its way, and must not meet the next turn.
            Wait.until("the interrupt is there", Thread::interrupted);
        }
        return false;
    }

    @ParameterizedTest
    @MethodSource(STORES)
    void interruptedThreadsLeaveNothing(String url) throws Exception {
        ScheduledExecutorService clock = Executors.newSingleThreadScheduledExecutor();
        Turn upgrade = sailor -> {
            try (Guard reader = sailor.upgradeable()) {
                boolean cut = interrupted(sailor, clock, () -> {
                    reader.upgrade();
                    return () -> {};
                });
                assertTrue(reader.isHeld());
                return cut;
            }
        };
        storm(url, List.of(
            sailor -> interrupted(sailor, clock, sailor.lock()::acquire),
            sailor -> interrupted(sailor, clock, () -> sailor.lock().acquire(Duration.ofSeconds(10))),
            sailor -> interrupted(sailor, clock, sailor.all()::acquire),
            sailor -> interrupted(sailor, clock, sailor.election()::campaign),
            sailor -> interrupted(sailor, clock, sailor.reader()::acquire),
            upgrade));
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
