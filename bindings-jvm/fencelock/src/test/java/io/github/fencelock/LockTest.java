package io.github.fencelock;

import static org.junit.jupiter.api.Assertions.assertDoesNotThrow;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Locks and their guards, on every store. */
final class LockTest {
    private static final String STORES = "io.github.fencelock.Stores#all";

    @ParameterizedTest
    @MethodSource(STORES)
    void aLockIsHeldByOneAtATimeWithRisingTokens(String url) throws Exception {
        String name = Stores.name();
        try (Client one = Fencelock.connect(url); Client other = Fencelock.connect(url)) {
            long first;
            try (Guard guard = one.lock(name).ttl(Duration.ofSeconds(60)).acquire()) {
                first = guard.token();
                assertTrue(guard.isHeld());
                assertEquals(name, guard.name());
                assertTrue(guard.remaining().compareTo(Duration.ofSeconds(40)) > 0, () -> "" + guard.remaining());
                guard.check();
                assertTrue(other.lock(name).tryAcquire().isEmpty());
            }
            Guard second = other.lock(name).tryAcquire().orElseThrow();
            assertTrue(second.token() > first);
            assertEquals(Released.RELEASED, second.release());
            assertFalse(second.isHeld());
            assertEquals(Duration.ZERO, second.remaining());
            assertThrows(LockNotHeldException.class, second::check);
            assertThrows(LockNotHeldException.class, second::release);
            second.close();
            Wait.atRest(one, name);
            Wait.atRest(other);
        }
    }

    @ParameterizedTest
    @MethodSource(STORES)
    void aWaiterIsServedWhenTheHolderGivesBack(String url) throws Exception {
        String name = Stores.name();
        try (Client one = Fencelock.connect(url); Client other = Fencelock.connect(url)) {
            Guard guard = one.lock(name).acquire();
            CompletableFuture<Guard> waits = other.lock(name).info("next").acquireAsync();
            Wait.until("somebody waits", () -> one.lock(name).inspect().waiters().size() == 1);
            LockState state = one.lock(name).inspect();
            assertEquals("next", state.waiters().get(0).info().get("info"));
            assertEquals(guard.token(), state.holders().get(0).token().getAsLong());
            assertEquals("java", state.holders().get(0).info().get("language"));
            guard.release().check();
            waits.get(20, TimeUnit.SECONDS).close();
            assertEquals(List.of(), one.names(name + "-none"));
        }
    }

    @ParameterizedTest
    @MethodSource(STORES)
    void aWaitEndsWithATimeout(String url) throws Exception {
        String name = Stores.name();
        try (Client one = Fencelock.connect(url); Client other = Fencelock.connect(url)) {
            try (Guard guard = one.lock(name).acquire()) {
                LockTimeoutException timeout = assertThrows(
                    LockTimeoutException.class, () -> other.lock(name).acquire(Duration.ofMillis(50)));
                assertEquals(Code.TIMEOUT, timeout.code());
                assertTrue(timeout.retryable());
                assertEquals(name, timeout.fields().get("name"));
                assertTrue(guard.isHeld());
            }
            Wait.atRest(other, name);
        }
    }

    @ParameterizedTest
    @MethodSource(STORES)
    void whatIsDoneUnderALockIsExact(String url) throws Exception {
        String name = Stores.name();
        int[] count = {0};
        try (Client one = Fencelock.connect(url); Client other = Fencelock.connect(url)) {
            Thread[] threads = new Thread[8];
            for (int number = 0; number < threads.length; number++) {
                Lock lock = (number % 2 == 0 ? one : other).lock(name);
                threads[number] = new Thread(() -> {
                    for (int turn = 0; turn < 25; turn++) {
                        try {
                            lock.withLock(guard -> {
                                int seen = count[0];
                                Thread.yield();
                                return count[0] = seen + 1;
                            });
                        } catch (InterruptedException interrupted) {
                            return;
                        }
                    }
                });
                threads[number].start();
            }
            for (Thread thread : threads) {
                thread.join();
            }
            assertEquals(200, count[0]);
            Wait.atRest(one, name);
        }
    }

    @Tag("full")
    @Test
    void whoClosesWhatAnotherIsClosingIsDone() throws Exception {
        try (RedisServer server = new RedisServer(); Client client = Fencelock.connect(server.url() + "?timeout=300ms")) {
            List<Guard> holds = List.of(client.lock("x").acquire(), client.election("y").campaign(),
                (Run) client.job("z", Duration.ofDays(1)).ttl(Duration.ofSeconds(2)).start());
            server.standStill();
            // What becomes of it on a store that does not answer is the first one's to hear.
            List<CompletableFuture<Void>> firsts = holds.stream().map(hold -> CompletableFuture.runAsync(hold::close, work ->
                new Thread(work).start())).toList();
            Wait.until("they ask", () -> holds.stream().noneMatch(Guard::isHeld));
            holds.forEach(hold -> assertDoesNotThrow(hold::close));
            for (CompletableFuture<Void> first : firsts) {
                first.handle((done, error) -> null).get(Wait.PATIENCE.toSeconds(), TimeUnit.SECONDS);
            }
        }
    }

    @Test
    void aLossIsToldAndIsRaisedAtTheEnd() throws Exception {
        String name = Stores.name();
        try (Client client = Fencelock.connect(Stores.redis().url())) {
            Lock lock = client.lock(name).ttl(Duration.ofSeconds(1)).renew(false);
            CompletableFuture<Void> told = new CompletableFuture<>();
            LockLostException lost = assertThrows(LockLostException.class, () -> lock.withLock(guard -> {
                guard.onLost(() -> told.complete(null));
                guard.lost().get(20, TimeUnit.SECONDS);
                assertFalse(guard.isHeld());
                assertThrows(LockLostException.class, guard::check);
                return null;
            }));
            assertEquals(Code.LOST, lost.code());
            told.get(20, TimeUnit.SECONDS);
            Wait.atRest(client, name);
        }
    }

    @Test
    void whatTheBodyThrowsIsNeverHiddenByALoss() throws Exception {
        try (Client client = Fencelock.connect(Stores.redis().url())) {
            Lock lock = client.lock(Stores.name()).ttl(Duration.ofSeconds(1)).renew(false);
            IOException mine = new IOException("mine");
            IOException seen = assertThrows(IOException.class, () -> lock.withLock(guard -> {
                guard.lost().join();
                throw mine;
            }));
            assertSame(mine, seen);
            assertEquals(LockLostException.class, seen.getSuppressed()[0].getClass());
            Job job = client.job(Stores.name(), Duration.ofDays(1)).ttl(Duration.ofSeconds(1));
            IOException ofRun = assertThrows(IOException.class, () -> job.withRun(run -> {
                Stores.redis().forget(job.name());
                run.lost().join();
                throw new IOException("mine");
            }));
            assertEquals(LockLostException.class, ofRun.getSuppressed()[0].getClass());
        }
    }

    @Test
    void aGuardThatWasGivenBackIsNotToldToBeLost() throws Exception {
        try (Client client = Fencelock.connect("memory:")) {
            Guard guard = client.lock("x").acquire();
            CompletableFuture<Void> lost = guard.lost();
            guard.release().check();
            Wait.atRest(client, "x");
            assertFalse(lost.isDone());
        }
    }

    @Test
    void anUnknownOptionNamesTheNearest() {
        try (Client client = Fencelock.connect("memory:")) {
            InvalidArgumentException error = assertThrows(
                InvalidArgumentException.class, () -> client.lock("x").option("tll", "10s").acquire());
            assertEquals("ttl", error.fields().get("nearest"));
            assertThrows(InvalidArgumentException.class, () -> client.lock("x").option("ttl", new Object()).acquire());
            assertThrows(InvalidArgumentException.class, () -> client.lock("x").ttl(Duration.ZERO).acquire());
            InvalidArgumentException time = assertThrows(
                InvalidArgumentException.class, () -> client.lock("x").option("ttl", "soon").acquire());
            assertTrue(time.getMessage().contains("`ttl` must be a time"), time.getMessage());
        }
    }

    @Test
    void allOptionsReachTheCore() throws Exception {
        ClientOptions options = new ClientOptions().ttl(Duration.ofSeconds(7)).fair(false).waitAtMost(null)
            .option("info", Map.of("room", "12")).timeout(Duration.ofSeconds(3)).app("shop");
        try (Client client = Fencelock.connect("memory:options", options)) {
            Guard guard = client.lock("x").maxHold(Duration.ofMinutes(1)).local(0).acquire();
            LockState.Holder holder = client.lock("x").inspect().holders().get(0);
            assertEquals(Map.of("room", "12"), holder.info().get("info"));
            assertEquals("shop", holder.info().get("app"));
            assertTrue(holder.left().orElseThrow().compareTo(Duration.ofSeconds(7)) <= 0);
            assertTrue(guard.remaining().compareTo(Duration.ofSeconds(7)) <= 0);
            guard.release().check();
        }
    }

    @Test
    void aStoreThatIsNotThereIsUnavailable() {
        String url = "redis://user:s3cr3t@127.0.0.1:1?connect_timeout=500ms";
        UnavailableException error = assertThrows(UnavailableException.class, () -> Fencelock.connect(url));
        assertTrue(error.retryable());
        assertFalse(error.toString().contains("s3cr3t"), error::toString);
        assertThrows(InvalidArgumentException.class, () -> Fencelock.connect("mongodb://host"));
    }

    @Test
    void aClosedClientRefuses() throws Exception {
        Client client = Fencelock.connect("memory:closed");
        Guard guard = client.lock("x").acquire();
        CompletableFuture<Guard> waits = client.lock("x").acquireAsync();
        client.close();
        assertThrows(ClosedException.class, () -> client.lock("y").acquire());
        assertEquals(ClosedException.class, waits.handle((held, error) -> error.getClass()).join());
        assertEquals(Released.ALREADY_LOST, guard.release());
        client.close();
    }
}
