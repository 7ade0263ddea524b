package io.github.fencelock;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Test;

/** A search for what is left on a server finds it, of every kind. */
final class LeftoverTest {
    private static String hold(String name) {
        return "the hold fencelock:{" + name + "}:held:" + name;
    }

    @Test
    void whateverIsLeftIsSeen() throws Exception {
        try (RedisServer server = new RedisServer(); Client client = Fencelock.connect(server.url());
             Client other = Fencelock.connect(server.url())) {
            Map<String, Guard> holds = new LinkedHashMap<>();
            holds.put("s/mutex", client.lock("s/mutex").acquire());
            holds.put("s/read", client.readLock("s/read").acquire());
            holds.put("s/write", client.writeLock("s/write").acquire());
            holds.put("s/permits", client.semaphore("s/permits", 2).acquire());
            holds.put("s/leads", client.election("s/leads").campaign());
            holds.put("s/job", (Run) client.job("s/job", Duration.ofDays(1)).start());
            for (String name : holds.keySet()) {
                assertEquals(!name.equals("s/job"), server.leftovers(name).contains(hold(name)), name);
                assertTrue(!server.leftovers(name).isEmpty(), name);
            }

            CompletableFuture<Guard> waits = other.lock("s/mutex").acquireAsync();
            Wait.until("it waits", () -> server.leftovers("s/mutex").stream().anyMatch(left -> left.contains(":lock:s/mutex w")));
            waits.cancel(true);
            Wait.until("it does not", () -> server.leftovers("s/mutex").equals(List.of(hold("s/mutex"))));

            holds.values().forEach(Guard::close);
            client.version("s/value").update(seen -> 1L);
            Wait.until(() -> "" + server.leftovers("s/"), () -> server.leftovers("s/").isEmpty());
            String record = server.texts("KEYS", "fencelock:*:lock:s/mutex").get(0);
            server.command("PERSIST", record);
            assertEquals(List.of(record + ", which has no end"), server.leftovers("s/"));
        }
    }
}
