package io.github.fencelock;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.BooleanSupplier;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Every call that waits ends within 200 ms of an interrupt, each single time, and what it asked for is taken back. */
final class InterruptTest {
    private static final String STORES = "io.github.fencelock.Stores#all";
    /** In microseconds. */
    private static final long PROMPT = 200_000;
    private static final int TIMES = Wait.tenth(200);

    /** A call that waits until it is interrupted. */
    private interface Call {
        void make() throws Exception;
    }

    /** From when the thread was interrupted to when it had come out of the call, by {@link System#nanoTime}. */
    private record Took(long begin, long end) {
        long micros() {
            return (end - begin) / 1_000;
        }
    }

    /** Interrupts a call that waits. */
    private static Took interrupted(ThreadFactory threads, BooleanSupplier waits, Call call) throws Exception {
        AtomicLong ended = new AtomicLong();
        Thread thread = threads.newThread(() -> {
            try {
                call.make();
            } catch (InterruptedException expected) {
                ended.set(System.nanoTime());
            } catch (Exception other) {
                throw new AssertionError(other);
            }
        });
        thread.start();
        Wait.until("it waits", waits);
        long begin = System.nanoTime();
        thread.interrupt();
        thread.join(Wait.PATIENCE.toMillis());
        assertTrue(ended.get() != 0, "it did not end by an InterruptedException");
        return new Took(begin, ended.get());
    }

    private static void allEndPromptly(String url, ThreadFactory threads) throws Exception {
        String held = Stores.name();
        String read = Stores.name();
        String written = Stores.name();
        ClientOptions options = new ClientOptions().observe(Duration.ofSeconds(5));
        try (Client client = Fencelock.connect(url, options); Client other = Fencelock.connect(url);
             Guard holder = other.lock(held).acquire(); Guard reader = other.readLock(read).acquire();
             Guard writer = other.writeLock(written).acquire(); Guard permit = other.semaphore(held + "-permits", 1).acquire();
             Heart heart = new Heart()) {
            Observer observer = client.election(held).observe();
            assertEquals(holder.token(), observer.changed().orElseThrow().token().getAsLong());
            Map<String, Call> calls = new LinkedHashMap<>();
            calls.put("acquire", () -> client.lock(held).acquire());
            calls.put("acquire for a while", () -> client.lock(held).acquire(Duration.ofMinutes(1)));
            calls.put("withLock", () -> client.lock(held).withLock(guard -> guard.token()));
            calls.put("all", () -> client.all(held, held + "-free").acquire());
            calls.put("read", () -> client.readLock(written).acquire());
            calls.put("write", () -> client.writeLock(written).acquire());
            calls.put("permits", () -> client.semaphore(held + "-permits", 1).acquire());
            calls.put("reentrant", () -> client.reentrant(held).acquire());
            calls.put("campaign", () -> client.election(held).campaign());
            calls.put("changed", observer::changed);
            calls.put("lockInterruptibly", () -> client.lock(held).asLock().lockInterruptibly());
            calls.put("tryLock", () -> client.lock(held).asLock().tryLock(1, TimeUnit.MINUTES));
            for (Map.Entry<String, Call> call : calls.entrySet()) {
                List<Took> all = new ArrayList<>();
                for (int time = 0; time < TIMES; time++) {
                    all.add(interrupted(threads, () -> client.stats().running() == 1, call.getValue()));
                    Wait.until("it is given up", () -> client.stats().running() == 0);
                }
                long[] took = all.stream().mapToLong(Took::micros).sorted().toArray();
                System.out.printf("%s on %s: interrupted %d times, half within %d µs, all within %d µs%n", call.getKey(),
                    url.split(":")[0], TIMES, took[TIMES / 2], took[TIMES - 1]);
                for (Took one : all) {
                    long stalled = heart.stalled(one.begin, one.end) / 1_000;
                    assertTrue(one.micros() - stalled <= PROMPT, () -> call.getKey() + " ended after " + one.micros()
                        + " µs, for " + stalled + " of which nothing else ran either");
                }
                // Should it be we who let no heart beat.
                assertTrue(took[TIMES / 2] <= PROMPT, () -> call.getKey() + " ended after " + Arrays.toString(took));
                Wait.until("nobody waits", () -> client.lock(held).inspect().waiters().isEmpty());
            }
            assertTrue(reader.isHeld() && writer.isHeld() && permit.isHeld());
        }
    }

    @ParameterizedTest
    @MethodSource(STORES)
    void whateverWaitsEndsPromptly(String url) throws Exception {
        allEndPromptly(url, Thread::new);
    }

    @Test
    void virtualThreadsDoSoToo() throws Exception {
        allEndPromptly(Stores.redis().url(), VirtualThreadTest.virtual());
    }

    /** The run of a job does not wait for anybody: the interrupt is kept until the store has answered. */
    @ParameterizedTest
    @MethodSource(STORES)
    void whatOnlyAsksKeepsTheInterrupt(String url) throws Exception {
        try (Client client = Fencelock.connect(url)) {
            String name = Stores.name();
            Guard guard = client.lock(name).acquire();
            Thread.currentThread().interrupt();
            Run run = (Run) client.job(name, Duration.ofDays(1)).start();
            assertEquals(Released.RELEASED, run.succeed());
            assertEquals(Released.RELEASED, guard.release());
            assertTrue(Thread.interrupted());
            Wait.atRest(client, name);
        }
    }
}
