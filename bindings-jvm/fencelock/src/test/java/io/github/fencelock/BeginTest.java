package io.github.fencelock;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;

import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Nothing begins under a lock that was lost before whoever waited for it could go on. */
final class BeginTest {
    private static final Duration LEASE = Duration.ofSeconds(1);

    /** Something that waits for a lock. */
    private interface Ask {
        void ask() throws Exception;
    }

    private final AtomicBoolean begun = new AtomicBoolean();

    private Void begin() {
        begun.set(true);
        return null;
    }

    /** All ways to wait for a lock, each for one of its own. */
    private Map<String, Ask> ways(Client client, String prefix, String option) {
        Map<String, Ask> ways = new LinkedHashMap<>();
        ways.put("withLock", () -> brief(client.lock(prefix + "withLock"), option).withLock(guard -> begin()));
        ways.put("withAll", () -> brief(client.all(prefix + "withAll"), option).withLock(guard -> begin()));
        ways.put("acquire", () -> brief(client.lock(prefix + "acquire"), option).acquire());
        ways.put("wait", () -> brief(client.writeLock(prefix + "wait"), option).acquire(Duration.ofSeconds(10)));
        ways.put("try", () -> brief(client.semaphore(prefix + "try", 1), option).tryAcquire());
        ways.put("async", () -> brief(client.readLock(prefix + "async"), option).acquireAsync().thenAccept(guard -> begin()).join());
        ways.put("tryAsync", () ->
            brief(client.lock(prefix + "tryAsync"), option).tryAcquireAsync().thenAccept(guard -> begin()).join());
        ways.put("thread", () -> brief(client.lock(prefix + "thread"), option).asLock().lock());
        ways.put("tryThread", () -> brief(client.lock(prefix + "tryThread"), option).asLock().tryLock());
        ways.put("campaign", () -> client.election(prefix + "campaign").ttl(LEASE).campaign());
        ways.put("tryCampaign", () -> client.election(prefix + "tryCampaign").ttl(LEASE).tryCampaign());
        ways.put("withRun", () -> client.job(prefix + "withRun", Duration.ofDays(1)).ttl(LEASE).withRun(run -> begin()));
        ways.put("start", () -> client.job(prefix + "start", Duration.ofDays(1)).ttl(LEASE).start());
        return ways;
    }

    private static <T extends LockOptions<T>> T brief(T lock, String option) {
        T brief = lock.option(option, LEASE);
        return option.equals("ttl") ? brief.renew(false) : brief;
    }

    /** The end of a thread that calls `ask`: the exception's name, or `nothing`. */
    private static CompletableFuture<String> ending(Ask ask) {
        CompletableFuture<String> ended = new CompletableFuture<>();
        new Thread(() -> {
            try {
                ask.ask();
                ended.complete("nothing");
            } catch (CompletionException error) {
                ended.complete(error.getCause().getClass().getSimpleName());
            } catch (Throwable error) {
                ended.complete(error.getClass().getSimpleName());
            }
        }).start();
        return ended;
    }

    @ParameterizedTest
    @ValueSource(strings = {"ttl", "max_hold"})
    void aWaitForWhatIsLostWhenItIsHeardOfEndsWithTheLoss(String option) throws Exception {
        String prefix = Stores.name() + "/";
        try (Client client = Fencelock.connect(Stores.redis().url())) {
            Map<String, Ask> ways = ways(client, prefix, option);
            List<CompletableFuture<String>> endings = new ArrayList<>();
            try (Standstill still = new Standstill(client, prefix + "first")) {
                ways.values().forEach(ask -> endings.add(ending(ask)));
                Wait.until(() -> "all are answered: " + client.stats(), () -> client.stats().done() >= ways.size());
                // A leader and a run are always renewed: they are lost because somebody else has deleted them.
                for (String way : List.of("campaign", "tryCampaign", "withRun", "start")) {
                    Stores.redis().forget(prefix + way);
                }
                Thread.sleep(LEASE.plusMillis(100).toMillis());
            }
            int nth = 0;
            for (String way : ways.keySet()) {
                String ended = endings.get(nth++).get(Wait.PATIENCE.toSeconds(), TimeUnit.SECONDS);
                assertEquals("LockLostException", ended, option + ": " + way);
            }
            assertFalse(begun.get());
            Wait.atRest(client, ways.keySet().stream().map(prefix::concat).toArray(String[]::new));
        }
    }
}
