package io.github.fencelock;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

/** An observer that follows an election misses nothing. */
final class ObserverTest {
    /** Keeps every thread of the callbacks until it is closed: what was answered meanwhile has reached nobody. */
    private static final class Busy implements AutoCloseable {
        private final CountDownLatch end = new CountDownLatch(1);

        Busy() throws InterruptedException {
            int threads = Callbacks.MOST;
            CountDownLatch begun = new CountDownLatch(threads);
            for (int number = 0; number < threads; number++) {
                Callbacks.execute(() -> {
                    begun.countDown();
                    Wait.until("the test is over", () -> end.getCount() == 0);
                });
            }
            assertTrue(begun.await(10, TimeUnit.SECONDS));
        }

        @Override
        public void close() {
            end.countDown();
        }
    }

    @Test
    void whatWasAnsweredToACancelledFutureIsToldToTheNext() throws Exception {
        ClientOptions options = new ClientOptions().observe(Duration.ofMillis(10));
        try (Client client = Fencelock.connect("memory:observer", options)) {
            Observer observer = client.election("x").observe();
            assertEquals(Optional.empty(), observer.changedAsync().get(10, TimeUnit.SECONDS));
            CompletableFuture<Optional<Leader>> given = observer.changedAsync();
            try (Busy busy = new Busy(); Guard leads = client.election("x").campaign()) {
                Wait.until("it is answered", () -> client.stats().running() == 0 && client.stats().done() == 0);
                assertTrue(given.cancel(true));
                busy.close();
                // When all threads can be kept again, they have done what was left.
                new Busy().close();
                Leader told = observer.changedAsync().get(10, TimeUnit.SECONDS).orElseThrow();
                assertEquals(leads.token(), told.token().getAsLong());
                CompletableFuture<Optional<Leader>> waits = observer.changedAsync();
                leads.release();
                assertEquals(Optional.empty(), waits.get(10, TimeUnit.SECONDS));
            }
        }
    }
}
