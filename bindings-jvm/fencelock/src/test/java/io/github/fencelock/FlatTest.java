package io.github.fencelock;

import java.io.IOException;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Test;

/** 100,000 acquires and releases, a tenth in a hurry: memory, descriptors and threads stay as they are. */
final class FlatTest {
    private static final int FLIGHT = 64;

    private static void pairs(Client client, int pairs) throws Exception {
        Lock lock = client.lock(Stores.name());
        for (int number = 0; number < pairs / 2; number++) {
            lock.acquire().release().check();
        }
        Deque<CompletableFuture<Void>> flight = new ArrayDeque<>();
        for (int number = 0; number < pairs / 2; number++) {
            if (flight.size() == FLIGHT) {
                flight.remove().join();
            }
            Lock mine = client.lock(lock.name() + number % FLIGHT);
            flight.add(mine.acquireAsync().thenCompose(Guard::releaseAsync).thenAccept(Released::check));
        }
        flight.forEach(CompletableFuture::join);
    }

    @Test
    void manyPairsLeaveNothing() throws Exception {
        try (Client client = Fencelock.connect(Stores.redis().url())) {
            int count = Wait.tenth(100_000);
            pairs(client, count / 4);
            Weight.staysFlat(() -> {
                pairs(client, count);
                Wait.atRest(client);
            });
        }
    }

    @Test
    void clientsThatComeAndGoLeaveNothing() throws Exception {
        Weight before = null;
        for (int number = 0; number < 200; number++) {
            try (Client client = Fencelock.connect(Stores.redis().url())) {
                client.lock("come-and-go").acquire().close();
            }
            if (number == 50) {
                before = Weight.now();
            }
        }
        Weight first = before;
        Wait.until("their connections are closed", () -> {
            try {
                return Weight.now().descriptors() <= first.descriptors();
            } catch (IOException error) {
                return false;
            }
        });
    }
}
