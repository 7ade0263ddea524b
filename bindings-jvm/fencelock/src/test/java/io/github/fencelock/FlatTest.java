package io.github.fencelock;

import java.io.IOException;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** 100,000 acquires and releases, a tenth in a hurry: memory, descriptors and threads stay as they are. */
@Tag("full")
final class FlatTest {
    private static final String STORES = "io.github.fencelock.Stores#all";
    private static final int FLIGHT = 64;

    /** So many pairs of locks whose names begin like this. */
    private interface Pairs {
        void make(Client client, String name, int times) throws Exception;
    }

    private static void leavesNothing(String how, String url, Pairs pairs) throws Exception {
        String name = Stores.name();
        try (Client client = Fencelock.connect(url)) {
            Weight.staysFlat(how + " on " + url.split(":")[0], times -> {
                pairs.make(client, name, times);
                Wait.atRest(client);
            });
        }
    }

    /** Acquires and releases in a thread that waits, and now and then does something else with its guard. */
    private static void pair(Lock lock, int number) throws InterruptedException {
        switch (number % 10) {
            case 0 -> {
                Guard guard = lock.acquire();
                guard.lost();
                guard.release().check();
            }
            case 1 -> {
                java.util.concurrent.locks.Lock view = lock.asLock();
                view.lock();
                view.unlock();
            }
            case 2 -> lock.tryAcquire().orElseThrow().close();
            default -> lock.acquire().release().check();
        }
    }

    @ParameterizedTest
    @MethodSource(STORES)
    void pairsOfAThreadLeaveNothing(String url) throws Exception {
        leavesNothing("blocking", url, (client, name, times) -> {
            Lock lock = client.lock(name);
            for (int number = 0; number < times; number++) {
                pair(lock, number);
            }
        });
    }

    @ParameterizedTest
    @MethodSource(STORES)
    void pairsOfFuturesLeaveNothing(String url) throws Exception {
        leavesNothing("futures", url, (client, name, times) -> {
            Deque<CompletableFuture<Void>> flight = new ArrayDeque<>();
            for (int number = 0; number < times; number++) {
                if (flight.size() == FLIGHT) {
                    flight.remove().join();
                }
                Lock mine = client.lock(name + number % FLIGHT);
                flight.add(mine.acquireAsync().thenCompose(Guard::releaseAsync).thenAccept(Released::check));
            }
            flight.forEach(CompletableFuture::join);
        });
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
