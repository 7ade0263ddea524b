package io.github.fencelock;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.logging.Handler;
import java.util.logging.LogRecord;
import java.util.logging.Logger;
import org.junit.jupiter.api.Test;

/** Handles that nobody gives back. */
final class LeakTest {
    private static final Logger LOGGER = Logger.getLogger("io.github.fencelock");

    /** What the log of the package was told. */
    private static final class Heard extends Handler {
        private final List<String> messages = new CopyOnWriteArrayList<>();

        @Override
        public void publish(LogRecord told) {
            messages.add(told.getMessage());
        }

        @Override
        public void flush() {}

        @Override
        public void close() {}
    }

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
        Heard heard = new Heard();
        LOGGER.addHandler(heard);
        LOGGER.setUseParentHandlers(false);
        try (Client client = Fencelock.connect(Stores.redis().url())) {
            String name = Stores.name();
            forgetGuard(client, name);
            collect("the lock is free", () -> client.lock(name).inspect().holders().isEmpty());
            Wait.atRest(client, name);
            assertEquals(1, heard.messages.stream().filter(message -> message.contains(name)).count());

            forgetGuard(client, name);
            Guard closed = client.lock(Stores.name()).acquire();
            String well = closed.name();
            closed.close();
            closed = null;
            collect("the lock is free again", () -> client.lock(name).inspect().holders().isEmpty());
            assertTrue(heard.messages.stream().noneMatch(message -> message.contains(well)));
        } finally {
            LOGGER.removeHandler(heard);
            LOGGER.setUseParentHandlers(true);
        }
    }

    @Test
    void aGuardOfADeadThreadIsReleased() throws Exception {
        LOGGER.setUseParentHandlers(false);
        try (Client client = Fencelock.connect("memory:dead-thread")) {
            Thread thread = new Thread(() -> client.lock("x").asLock().lock());
            thread.start();
            thread.join();
            thread = null;
            collect("the lock is free", () -> client.lock("x").inspect().holders().isEmpty());
        } finally {
            LOGGER.setUseParentHandlers(true);
        }
    }

    @Test
    void aForgottenClientGivesEverythingBack() throws Exception {
        Heard heard = new Heard();
        LOGGER.addHandler(heard);
        LOGGER.setUseParentHandlers(false);
        try (Client witness = Fencelock.connect(Stores.redis().url())) {
            String name = Stores.name();
            forgetClient(name);
            collect("its lock is free", () -> witness.lock(name).inspect().holders().isEmpty());
            Wait.until("it is told", () -> heard.messages.stream().anyMatch(message -> message.contains("client")));
        } finally {
            LOGGER.removeHandler(heard);
            LOGGER.setUseParentHandlers(true);
        }
    }

    private static void forgetClient(String name) throws InterruptedException {
        Fencelock.connect(Stores.redis().url()).lock(name).acquire();
    }
}
