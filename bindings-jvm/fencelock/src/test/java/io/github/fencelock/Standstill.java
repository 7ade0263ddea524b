package io.github.fencelock;

import java.time.Duration;
import java.util.Map;
import java.util.concurrent.CountDownLatch;

/** While it lasts the thread that hears of everything stands still, as all threads do in a process that is paused. */
public final class Standstill implements AutoCloseable {
    private final CountDownLatch over = new CountDownLatch(1);

    /** Begins, for all clients of this process; this one needs a name that nobody else uses. */
    public Standstill(Client client, String name) throws InterruptedException {
        CountDownLatch begun = new CountDownLatch(1);
        Guard brief = client.lock(name).ttl(Duration.ofSeconds(1)).renew(false).acquire();
        // What is answered only later is heard of by that thread, whoever is busy.
        Drain.submit(client, Map.of("op", "lost", "guard", brief.number), answer -> {
            begun.countDown();
            try {
                over.await();
            } catch (InterruptedException unexpected) {
                throw new IllegalStateException(unexpected);
            }
        });
        begun.await();
        brief.decline();
    }

    @Override
    public void close() {
        over.countDown();
    }
}
