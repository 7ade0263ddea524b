package io.github.fencelock;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

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

    private static void forgetClient(String name) throws InterruptedException {
        Fencelock.connect(Stores.redis().url()).lock(name).acquire();
    }
}
