package io.github.fencelock;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

/** Tests of the calls on fencelock's own threads, and of failures there. */
final class CallbacksTest {
    /** More than there are threads at first. */
    private static final int WAITING = 50;

    @Test
    void aLossIsToldThoughOthersWait() throws Exception {
        CountDownLatch end = new CountDownLatch(1);
        CountDownLatch lost = new CountDownLatch(1);
        try (Client client = Fencelock.connect("memory:")) {
            CountDownLatch waiting = new CountDownLatch(WAITING);
            for (int number = 0; number < WAITING; number++) {
                Lock lock = client.lock("x" + number);
                // What is already told when somebody hangs on it is told to them by their own thread.
                try (Guard first = lock.acquire()) {
                    lock.acquireAsync().thenAccept(guard -> {
                        waiting.countDown();
                        awaited(end);
                        guard.close();
                    });
                    first.check();
                }
            }
            assertTrue(waiting.await(10, TimeUnit.SECONDS), "each has a thread to wait on");
            Guard guard = client.lock("short").ttl(Duration.ofSeconds(1)).renew(false).acquire();
            guard.onLost(lost::countDown);
            assertTrue(lost.await(10, TimeUnit.SECONDS), "the loss is told");
            assertThrows(LockLostException.class, guard::close);
        } finally {
            end.countDown();
        }
    }

    private static void awaited(CountDownLatch latch) {
        try {
            latch.await();
        } catch (InterruptedException interrupted) {
            throw new AssertionError(interrupted);
        }
    }

    @Test
    void whatWasLostOnItsWayIsGivenBack() throws InterruptedException {
        try (Client client = Fencelock.connect("memory:")) {
            Lock lock = client.lock("x");
            Guard held = lock.acquire();
            CompletableFuture<Guard> waits = lock.acquireAsync();
            CountDownLatch lost = new CountDownLatch(1);
            Guard brief = client.lock("brief").ttl(Duration.ofSeconds(1)).renew(false).acquire();
            brief.onLost(lost::countDown);
            Drain.fail(Answer.defect(new OutOfMemoryError("no news today")));
            CompletionException failed = assertThrows(CompletionException.class, waits::join);
            assertEquals(InternalException.class, failed.getCause().getClass());
            held.close();
            assertTrue(lost.await(10, TimeUnit.SECONDS), "a loss is told all the same");
            assertThrows(LockLostException.class, brief::close);
            Wait.until("nothing is left", () -> lock.inspect().holders().isEmpty() && client.stats().running() == 0);
            lock.acquire().close();
        }
    }
}
