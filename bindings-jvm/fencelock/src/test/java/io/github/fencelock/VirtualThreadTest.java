package io.github.fencelock;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

/** Waiting threads only park: thousands of virtual ones wait at once on two carriers. */
final class VirtualThreadTest {
    private static final int WAITERS = 2_000;

    /**
     * The factory of virtual threads, which the JDK that this is built by may not know: then the test is skipped, unless
     * {@code -Dfencelock.virtual=required} says that it must not be.
     */
    static ThreadFactory virtual() throws ReflectiveOperationException {
        Method builder;
        try {
            builder = Thread.class.getMethod("ofVirtual");
        } catch (NoSuchMethodException old) {
            assumeTrue("required".equals(System.getProperty("fencelock.virtual")), "this JVM has no virtual threads");
            throw old;
        }
        Object virtual = builder.invoke(null);
        Method factory = Class.forName("java.lang.Thread$Builder").getMethod("factory");
        return (ThreadFactory) factory.invoke(virtual);
    }

    @Test
    void thousandsWaitAtOnceAndAllAreServed() throws Exception {
        ThreadFactory virtual = virtual();
        AtomicInteger served = new AtomicInteger();
        AtomicInteger inside = new AtomicInteger();
        try (Client client = Fencelock.connect(Stores.redis().url())) {
            String name = Stores.name();
            Guard first = client.lock(name).acquire();
            List<Thread> threads = new ArrayList<>();
            for (int number = 0; number < WAITERS; number++) {
                Thread thread = virtual.newThread(() -> {
                    try (Guard guard = client.lock(name).acquire()) {
                        assertEquals(1, inside.incrementAndGet());
                        inside.decrementAndGet();
                        served.incrementAndGet();
                    } catch (InterruptedException interrupted) {
                        Thread.currentThread().interrupt();
                    }
                });
                threads.add(thread);
                thread.start();
            }
            // If a waiter kept its carrier, only as many as there are processors would get this far.
            Wait.until("all wait: " + client.stats(), () -> client.stats().running() == WAITERS);
            assertTrue(first.isHeld());
            first.close();
            for (Thread thread : threads) {
                thread.join();
            }
            assertEquals(WAITERS, served.get());
            Wait.atRest(client, name);
        }
    }

    @Test
    void virtualThreadsAreInterruptedLikeOthers() throws Exception {
        ThreadFactory virtual = virtual();
        try (Client client = Fencelock.connect("memory:virtual"); Guard guard = client.lock("x").acquire()) {
            AtomicInteger interrupted = new AtomicInteger();
            List<Thread> threads = new ArrayList<>();
            for (int number = 0; number < 100; number++) {
                Thread thread = virtual.newThread(() -> {
                    try {
                        client.lock("x").acquire().close();
                    } catch (InterruptedException expected) {
                        interrupted.incrementAndGet();
                    }
                });
                threads.add(thread);
                thread.start();
            }
            Wait.until("all wait", () -> client.stats().running() == 100);
            threads.forEach(Thread::interrupt);
            for (Thread thread : threads) {
                thread.join();
            }
            assertEquals(100, interrupted.get());
            assertTrue(guard.isHeld());
            Wait.until("nobody waits", () -> client.stats().running() == 0);
        }
    }
}
