package io.github.fencelock;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicIntegerArray;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.Stream;

/**
 * Threads that do things which are cut short at random moments, until 500 were; 5,000 with {@code FENCELOCK_FULL}. Then nothing
 * is left. {@code FENCELOCK_SEED} repeats the choices of a run.
 */
final class Storm {
    private static final int LOCKS = 4;
    private static final int THREADS = 8;
    /** A hold that is left does not end before the search for it gives up. */
    private static final Duration TTL = Wait.PATIENCE.multipliedBy(3);
    /** The shortest one of a job, so that its next run is soon due. */
    private static final Duration PERIOD = Duration.ofMillis(10);

    /** One thing that is done; whether it was cut short. */
    interface Turn {
        boolean cut(Sailor sailor) throws Exception;
    }

    private final String url;
    private final Map<String, Turn> turns;
    private final String prefix = Stores.name() + "/";
    private final AtomicInteger cut = new AtomicInteger();
    private final AtomicReference<Throwable> failure = new AtomicReference<>();

    Storm(String url, Map<String, Turn> turns) {
        this.url = url;
        this.turns = turns;
    }

    /** The state of one thread of a storm: two clients, names that all threads share, dice and a job of its own. */
    final class Sailor {
        final Random dice;
        private final Client client;
        private final Client other;
        private final String job;
        private long instant = 1_000_000;

        private Sailor(Client client, Client other, int number, long seed) {
            this.client = client;
            this.other = other;
            this.job = prefix + "job-" + number;
            this.dice = new Random(seed + number);
        }

        Client either() {
            return dice.nextBoolean() ? client : other;
        }

        /** One of those that all threads know; what is held in other ways has other names. */
        String name(String way) {
            return prefix + dice.nextInt(LOCKS) + way;
        }

        private <T extends LockOptions<T>> T drawn(T of) {
            return of.ttl(TTL).fair(dice.nextInt(4) > 0).local(dice.nextBoolean() ? 16 : 0);
        }

        Lock lock() {
            return drawn(either().lock(name("")));
        }

        All all() {
            return either().all(name(""), name("-more")).ttl(TTL);
        }

        Election election() {
            return either().election(name("")).ttl(TTL);
        }

        Lock reader() {
            return either().readLock(name("-read")).ttl(TTL);
        }

        Lock writer() {
            return either().writeLock(name("-read")).ttl(TTL);
        }

        Lock permits() {
            return drawn(either().semaphore(name("-permits"), 2));
        }

        /** A lock that nobody else knows. */
        Lock mine() {
            return either().lock(job + "-mine").ttl(TTL);
        }

        Lock scoped() {
            return either().reentrant(name("")).ttl(TTL);
        }

        Versioned value() {
            return either().version(name("-value"));
        }

        /** The job's next instant, as one of the clients asks for it: half a period after the last start, so that it is due. */
        Job nextRun() {
            instant += 60;
            // Whoever is interrupted here stays so.
            long end = System.nanoTime() + PERIOD.toNanos() / 2;
            for (long left; (left = end - System.nanoTime()) > 0;) {
                LockSupport.parkNanos(left);
            }
            return sameRun(either());
        }

        private Job sameRun(Client asks) {
            return asks.job(job, PERIOD).at(Instant.ofEpochSecond(instant)).ttl(TTL);
        }

        /** The run of this instant is there for whoever asks, before the lease of one that was left could have ended. */
        void runs() {
            Start due = sameRun(either()).start();
            for (long end = System.nanoTime() + Wait.PATIENCE.toNanos(); due instanceof Skipped && System.nanoTime() < end;) {
                due = sameRun(either()).start();
            }
            assertEquals(Released.RELEASED, assertInstanceOf(Run.class, due).succeed());
        }

        /** When to cut: in the same breath, within an answer's time or some later. In microseconds. */
        int moment() {
            int most = new int[] {0, 100, 3_000}[dice.nextInt(3)];
            return most == 0 ? 0 : dice.nextInt(most);
        }

        void rest() {
            LockSupport.parkNanos(moment() * 1_000L);
        }
    }

    private void sail(Sailor sailor, AtomicIntegerArray cuts, int enough) {
        List<Turn> choice = List.copyOf(turns.values());
        try {
            while (cut.get() < enough && failure.get() == null) {
                int drawn = sailor.dice.nextInt(choice.size());
                if (choice.get(drawn).cut(sailor)) {
                    cuts.incrementAndGet(drawn);
                    cut.incrementAndGet();
                }
            }
        } catch (Throwable error) {
            failure.compareAndSet(null, error);
        }
    }

    /** Waits for the end of the thread; a hold that is left behind would keep the others waiting. */
    private void endsWhileOthersAreCut(Thread thread, Client one, Client other) throws InterruptedException {
        for (int seen = -1; thread.isAlive(); seen = cut.get()) {
            assertTrue(seen < cut.get(),
                () -> "it stands still with " + one.stats() + ", " + other.stats() + ", " + Stores.left(url, prefix));
            thread.join(Wait.PATIENCE.toMillis());
        }
    }

    /** Has it rage, and looks at what is left. */
    void rages() throws Exception {
        String given = System.getenv("FENCELOCK_SEED");
        long seed = given == null ? System.nanoTime() : Long.parseLong(given);
        System.out.println("FENCELOCK_SEED=" + seed);
        AtomicIntegerArray cuts = new AtomicIntegerArray(turns.size());
        int before = Stores.connections(url);
        try (Heard heard = new Heard(); Client one = Fencelock.connect(url); Client other = Fencelock.connect(url)) {
            List<Thread> threads = new ArrayList<>();
            for (int number = 0; number < THREADS; number++) {
                Sailor sailor = new Sailor(one, other, number, seed);
                Thread thread = new Thread(() -> sail(sailor, cuts, Wait.tenth(5_000)));
                threads.add(thread);
                thread.start();
            }
            for (Thread thread : threads) {
                endsWhileOthersAreCut(thread, one, other);
            }
            if (failure.get() != null) {
                throw new AssertionError(failure.get());
            }
            System.out.println(url.split(":")[0] + ": cut short " + turns.keySet() + " " + cuts);
            for (int turn = 0; turn < turns.size(); turn++) {
                assertTrue(cuts.get(turn) > 0, () -> turns.keySet() + " " + cuts);
            }
            String[] names = new String[LOCKS];
            Arrays.setAll(names, number -> prefix + number);
            Wait.atRest(one, Stream.of("", "-more", "-read", "-permits")
                .flatMap(way -> Arrays.stream(names).map(name -> name + way)).toArray(String[]::new));
            Wait.atRest(other);
            Stores.nothingIsLeft(url, prefix);
            assertEquals(List.of(), heard.messages().stream().filter(told -> told.contains("collected")).toList(),
                "nothing was left to the collector of garbage");
        }
        Wait.until(() -> "connections are closed: " + Stores.connections(url) + " of " + before,
            () -> Stores.connections(url) <= before);
    }
}
