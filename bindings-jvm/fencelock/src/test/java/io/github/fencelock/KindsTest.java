package io.github.fencelock;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** All that a client hands out beside the plain lock, on every store. */
final class KindsTest {
    private static final String STORES = "io.github.fencelock.Stores#all";

    @ParameterizedTest
    @MethodSource(STORES)
    void readersShareAndAWriterIsAlone(String url) throws Exception {
        String name = Stores.name();
        try (Client client = Fencelock.connect(url)) {
            Guard one = client.readLock(name).acquire();
            Guard other = client.readLock(name).acquire();
            assertTrue(client.writeLock(name).tryAcquire().isEmpty());
            one.close();
            long before = other.token();
            other.close();
            Guard writer = client.writeLock(name).acquire();
            assertTrue(writer.token() > before);
            assertTrue(client.readLock(name).tryAcquire().isEmpty());
            assertEquals(Mode.WRITE, client.lock(name).inspect().holders().get(0).mode());
            writer.close();
            Wait.atRest(client, name);
        }
    }

    @ParameterizedTest
    @MethodSource(STORES)
    void permitsAreCounted(String url) throws Exception {
        String name = Stores.name();
        try (Client client = Fencelock.connect(url)) {
            Guard one = client.semaphore(name, 2).acquire();
            Guard two = client.semaphore(name, 2).acquire();
            assertTrue(client.semaphore(name, 2).tryAcquire().isEmpty());
            one.close();
            client.semaphore(name, 2).tryAcquire().orElseThrow().close();
            two.close();
            assertThrows(InvalidArgumentException.class, () -> client.semaphore(name, 0).tryAcquire());
        }
    }

    @ParameterizedTest
    @MethodSource(STORES)
    void severalAreOne(String url) throws Exception {
        String first = Stores.name();
        String second = Stores.name();
        try (Client client = Fencelock.connect(url)) {
            try (Guard both = client.all(second, first).ttl(Duration.ofSeconds(9)).acquire()) {
                assertEquals(java.util.Set.of(first, second), both.tokens().keySet());
                assertEquals(both.tokens().get(List.of(first, second).stream().sorted().findFirst().get()), both.token());
                assertTrue(client.lock(first).tryAcquire().isEmpty());
                assertTrue(client.all(first).tryAcquire().isEmpty());
            }
            Wait.atRest(client, first, second);
        }
    }

    @ParameterizedTest
    @MethodSource(STORES)
    void whoeverHasTheScopeEntersAgain(String url) throws Exception {
        String name = Stores.name();
        try (Client client = Fencelock.connect(url)) {
            Lock again = client.reentrant(name);
            Guard outer = again.acquire();
            Guard inner = again.tryAcquire().orElseThrow();
            assertEquals(outer.token(), inner.token());
            assertTrue(client.scope().lock(name).tryAcquire().isEmpty());
            inner.close();
            assertTrue(outer.isHeld());
            outer.close();
            Wait.atRest(client, name);
        }
    }

    @ParameterizedTest
    @MethodSource(STORES)
    void oneLeadsAndItsEndIsSeen(String url) throws Exception {
        String name = Stores.name();
        try (Client client = Fencelock.connect(url, new ClientOptions().observe(Duration.ofMillis(20)))) {
            Election election = client.election(name).info("one");
            Observer observer = election.observe();
            assertTrue(observer.changed().isEmpty());
            Guard one = election.tryCampaign().orElseThrow();
            Leader leader = observer.changed().orElseThrow();
            assertEquals(one.token(), leader.token().getAsLong());
            assertEquals("one", leader.info().get("info"));
            assertEquals(Optional.of(leader), election.leader());
            CompletableFuture<Guard> next = election.campaignAsync();
            one.release().check();
            Guard two = next.get(20, TimeUnit.SECONDS);
            assertTrue(two.token() > one.token());
            two.close();
            assertTrue(election.leader().isEmpty());
        }
    }

    @ParameterizedTest
    @MethodSource(STORES)
    void aJobRunsOncePerInstant(String url) throws Exception {
        Instant instant = Instant.ofEpochSecond(1_000_000);
        try (Client client = Fencelock.connect(url)) {
            Duration period = Duration.ofMillis(20);
            Job job = client.job(Stores.name(), period).at(instant);
            assertTrue(job.inspect().isEmpty());
            assertTrue(job.withRun(run -> {
                assertEquals(instant, run.instant());
                assertEquals(JobState.Status.IN_PROGRESS, job.inspect().orElseThrow().status());
            }));
            assertFalse(job.withRun(run -> {}));
            List<Reason> told = new ArrayList<>();
            assertFalse(job.withRun(run -> {}, skipped -> told.add(skipped.reason())));
            assertEquals(List.of(Reason.DONE), told);
            JobState last = job.inspect().orElseThrow();
            assertEquals(JobState.Status.SUCCEEDED, last.status());
            Skipped done = (Skipped) job.start();
            assertEquals(last.token(), done.last().token());
            assertTrue(done.next().isEmpty());
            Job daily = client.job(job.name(), Duration.ofDays(1)).at(instant.plusSeconds(60));
            Skipped soon = (Skipped) daily.startAsync().get();
            assertEquals(Reason.NOT_DUE, soon.reason());
            assertEquals(last.started().plus(Duration.ofHours(12)), soon.next().orElseThrow());
            Job wrong = job.at(Instant.now().plus(Duration.ofHours(1)));
            assertEquals("at", assertThrows(InvalidArgumentException.class, wrong::start).fields().get("argument"));
            Thread.sleep(period.toMillis() / 2);
            Job next = job.at(instant.plusSeconds(60));
            assertThrows(IllegalStateException.class, () -> next.withRun(run -> {
                throw new IllegalStateException("out of paper");
            }));
            JobState state = job.inspect().orElseThrow();
            assertEquals(JobState.Status.FAILED, state.status());
            assertEquals("java", state.info().get("language"));
            Thread.sleep(period.toMillis() / 2);
            Run declined = (Run) job.at(instant.plusSeconds(120)).start();
            declined.decline();
            Wait.until("the run is left to others", () -> job.at(instant.plusSeconds(120)).start() instanceof Run);
        }
    }

    @ParameterizedTest
    @MethodSource(STORES)
    void aValueIsReplacedByWhoHasSeenIt(String url) throws Exception {
        try (Client client = Fencelock.connect(url)) {
            Versioned version = client.version(Stores.name()).retries(1_000).backoff(Duration.ofMillis(1));
            Map<String, Object> value = Map.of("stock", 3L, "price", 1.5, "tags", List.of("ä", true));
            long done = version.compareAndSet(OptionalLong.empty(), value).version().orElseThrow();
            assertEquals(Optional.of(Snapshot.written(value, done)), version.read());
            assertFalse(version.compareAndSet(OptionalLong.of(done - 1), 0).isDone());
            assertTrue(version.delete(done).isDone());
            assertTrue(version.read().isEmpty());
            List<CompletableFuture<?>> all = new CopyOnWriteArrayList<>();
            for (int number = 0; number < 20; number++) {
                all.add(version.updateAsync(seen -> (seen == null ? 0 : (long) seen) + 1));
            }
            for (int number = 0; number < 20; number++) {
                version.update(seen -> (seen == null ? 0 : (long) seen) + 1);
            }
            CompletableFuture.allOf(all.toArray(CompletableFuture[]::new)).get(20, TimeUnit.SECONDS);
            assertEquals(40L, version.read().orElseThrow().value());
            assertTrue(version.update(seen -> null).isEmpty());
            assertThrows(IllegalStateException.class, () -> version.update(seen -> {
                throw new IllegalStateException("mine");
            }));
        }
    }

    @ParameterizedTest
    @MethodSource(STORES)
    void theStoreSaysWhatItGuarantees(String url) {
        try (Client client = Fencelock.connect(url)) {
            Guarantees guarantees = client.guarantees();
            assertTrue(url.startsWith(guarantees.store()), guarantees::toString);
            assertFalse(guarantees.guarantees().isEmpty());
        }
    }
}
