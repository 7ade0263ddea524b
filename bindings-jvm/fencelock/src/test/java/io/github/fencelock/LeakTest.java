package io.github.fencelock;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.ref.Reference;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Consumer;
import java.util.function.LongSupplier;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** Handles that nobody gives back. */
final class LeakTest {
    /** Collects until something has happened. */
    private static void collect(String what, java.util.function.BooleanSupplier happened) {
        Wait.until(what, () -> {
            System.gc();
            return happened.getAsBoolean();
        });
    }

    private static void forgetGuard(Client client, String name) throws InterruptedException {
        client.lock(name).acquire();
    }

    @Test
    void aForgottenGuardIsReleasedAndComplainedAboutOnce() throws Exception {
        try (Heard heard = new Heard(); Client client = Fencelock.connect(Stores.redis().url())) {
            String name = Stores.name();
            forgetGuard(client, name);
            collect("the lock is free", () -> client.lock(name).inspect().holders().isEmpty());
            Wait.atRest(client, name);
            assertEquals(1, heard.messages().stream().filter(message -> message.contains(name)).count());

            forgetGuard(client, name);
            Guard closed = client.lock(Stores.name()).acquire();
            String well = closed.name();
            closed.close();
            closed = null;
            collect("the lock is free again", () -> client.lock(name).inspect().holders().isEmpty());
            assertTrue(heard.messages().stream().noneMatch(message -> message.contains(well)));
        }
    }

    @Test
    void aLoggerThatThrowsKeepsNothing() throws Exception {
        try (Heard heard = new Heard(() -> new IllegalStateException("a program's own logger"));
             Client client = Fencelock.connect(Stores.redis().url())) {
            String name = Stores.name();
            forgetGuard(client, name);
            collect("the lock is free", () -> client.lock(name).inspect().holders().isEmpty());
            assertEquals(1, heard.messages().stream().filter(message -> message.contains(name)).count());
        }
    }

    @Test
    void aGuardOfADeadThreadIsReleased() throws Exception {
        try (Heard heard = new Heard(); Client client = Fencelock.connect("memory:dead-thread")) {
            Thread thread = new Thread(() -> client.lock("x").asLock().lock());
            thread.start();
            thread.join();
            thread = null;
            collect("the lock is free", () -> client.lock("x").inspect().holders().isEmpty());
            Wait.until("it is told", () -> heard.messages().stream().anyMatch(message -> message.contains("`x`")));
        }
    }

    @Test
    void aForgottenClientGivesEverythingBack() throws Exception {
        try (Heard heard = new Heard(); Client witness = Fencelock.connect(Stores.redis().url())) {
            String name = Stores.name();
            forgetClient(name);
            collect("its lock is free", () -> witness.lock(name).inspect().holders().isEmpty());
            Wait.until("it is told", () -> heard.messages().stream().anyMatch(message -> message.contains("client")));
        }
    }

    /** Takes a lock and uses it, in a frame of its own, so that nothing refers to it after. */
    private static void useOnce(Client client, String name, Consumer<Guard> use) throws InterruptedException {
        use.accept(name.startsWith("office") ? client.election(name).campaign() : client.lock(name).acquire());
    }

    @Test
    void u02NoCollectionEndsAHoldInUse() throws Exception {
        Map<String, Consumer<Guard>> ways = new LinkedHashMap<>();
        ways.put("name", Guard::name);
        ways.put("token", Guard::token);
        ways.put("isHeld", Guard::isHeld);
        ways.put("remaining", Guard::remaining);
        ways.put("check", Guard::check);
        ways.put("extend", hold -> hold.extend(Duration.ofMinutes(1)));
        ways.put("onLost", hold -> hold.onLost(() -> {}));
        ways.put("lost", hold -> hold.lost().thenRun(() -> {}));
        ways.put("office", hold -> hold.onLost(() -> {}));
        int holds = Wait.tenth(1_000);
        try (Heard heard = new Heard(); Client client = Fencelock.connect("memory:")) {
            for (Map.Entry<String, Consumer<Guard>> way : ways.entrySet()) {
                for (int number = 0; number < holds; number++) {
                    useOnce(client, way.getKey() + number, way.getValue());
                }
            }
            forgetGuard(client, "untouched");
            // The collection that takes this one would have taken the others.
            collect("the untouched one is free", () -> client.lock("untouched").inspect().holders().isEmpty());
            for (String way : ways.keySet()) {
                for (int number = 0; number < holds; number++) {
                    assertTrue(client.lock(way + number).tryAcquire().isEmpty(), way + number);
                }
            }
            assertEquals(1, heard.messages().size(), heard.messages()::toString);
        }
    }

    @Test
    void u02ALossReachesACallbackThatNothingElseRefersTo() throws Exception {
        // The leases end soon, as nobody renews them.
        ClientOptions brief = new ClientOptions().ttl(Duration.ofSeconds(1)).renew(false);
        try (Heard heard = new Heard(); Client client = Fencelock.connect("memory:", brief)) {
            CountDownLatch told = new CountDownLatch(2);
            useOnce(client, "a", hold -> hold.onLost(told::countDown));
            useOnce(client, "b", hold -> hold.lost().thenRun(told::countDown));
            collect("both are told", () -> told.getCount() == 0);
            System.gc();
            assertTrue(heard.messages().stream().noneMatch(message -> message.contains("collected")), heard.messages()::toString);
        }
    }

    /** Stops waiting for an acquire, in both ways that end none. */
    private static void giveUp(Client client, String name, int number) {
        CompletableFuture<Guard> acquire = client.lock(name).acquireAsync();
        if (number % 2 == 0) {
            acquire.thenApply(Guard::name).cancel(true);
        } else {
            assertThrows(TimeoutException.class, () -> acquire.get(1, TimeUnit.MILLISECONDS));
        }
    }

    @Test
    @Tag("full")
    void u05AThousandAcquiresThatNobodyWaitsForLeaveNothing() throws Exception {
        String url = Stores.redis().url();
        try (Heard heard = new Heard(); Client holder = Fencelock.connect(url); Client client = Fencelock.connect(url)) {
            String prefix = Stores.name();
            List<Guard> held = new ArrayList<>();
            for (int number = 0; number < 8; number++) {
                held.add(holder.lock(prefix + number).acquire());
            }
            for (int number = 0; number < 1000; number++) {
                giveUp(client, prefix + number % 8, number);
            }
            held.forEach(Guard::release);
            // Each is collected once it was granted.
            LongSupplier collected = () -> heard.messages().stream().filter(message -> message.contains("collected")).count();
            for (long told = 0; told < 1000; told = collected.getAsLong()) {
                long before = told;
                collect("more than " + told + " are collected", () -> collected.getAsLong() > before);
            }
            Wait.atRest(client);
            assertEquals(1000, collected.getAsLong());
            Stores.nothingIsLeft(url, prefix);
        }
    }

    private static void closeClientOf(String name) throws InterruptedException {
        Client client = Fencelock.connect("memory:");
        Guard unused = client.lock(name).acquire();
        client.close();
        Reference.reachabilityFence(unused);
    }

    @Test
    void aGuardThatItsClientsCloseGaveBackIsNoComplaint() throws Exception {
        try (Heard heard = new Heard(); Client client = Fencelock.connect("memory:")) {
            closeClientOf("closed");
            forgetGuard(client, "forgotten");
            collect("the other one is complained about", () -> heard.messages().stream().anyMatch(message -> message.contains("`forgotten`")));
            assertTrue(heard.messages().stream().noneMatch(message -> message.contains("`closed`")), heard.messages()::toString);
        }
    }

    private static void forgetClient(String name) throws InterruptedException {
        Fencelock.connect(Stores.redis().url()).lock(name).acquire();
    }
}
