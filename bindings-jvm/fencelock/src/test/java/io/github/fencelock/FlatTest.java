package io.github.fencelock;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.concurrent.CompletableFuture;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/** 100,000 acquires and releases, a tenth in a hurry: memory, descriptors and threads stay as they are. */
final class FlatTest {
    private static final int FLIGHT = 64;

    /** What the process has of everything: memory in MB, descriptors, threads. */
    private record Weight(long memory, long descriptors, long threads) {
        static Weight now() throws IOException {
            System.gc();
            long pages = Long.parseLong(Files.readString(Path.of("/proc/self/statm")).split(" ")[1]);
            try (Stream<Path> descriptors = Files.list(Path.of("/proc/self/fd"));
                 Stream<Path> threads = Files.list(Path.of("/proc/self/task"))) {
                return new Weight(pages * 4 / 1024, descriptors.count(), threads.count());
            }
        }
    }

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
            int pairs = Wait.tenth(100_000);
            pairs(client, pairs / 4);
            Weight before = Weight.now();
            pairs(client, pairs);
            Wait.atRest(client);
            Weight after = Weight.now();
            System.out.println(pairs + " pairs: " + before + ", then " + after);
            assertTrue(after.memory() - before.memory() < 24, () -> before + ", then " + after);
            assertEquals(before.descriptors(), after.descriptors(), 4);
            assertTrue(after.threads() - before.threads() < 8, () -> before + ", then " + after);
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
                return Weight.now().descriptors() <= first.descriptors() + 4;
            } catch (IOException error) {
                return false;
            }
        });
    }
}
