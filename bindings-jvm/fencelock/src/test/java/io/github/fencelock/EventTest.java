package io.github.fencelock;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import java.util.logging.Level;
import java.util.logging.Logger;
import org.junit.jupiter.api.Test;

/** Tests of the events that a listener receives. */
final class EventTest {
    @Test
    void whatHappensToALockIsToldInOrder() throws Exception {
        List<Event> told = new CopyOnWriteArrayList<>();
        try (Client client = Fencelock.connect("memory:events", new ClientOptions().onEvent(told::add))) {
            Guard guard = client.lock("x").acquire();
            CompletableFuture<Guard> next = client.lock("x").acquireAsync();
            Wait.until("one waits", () -> told.stream().anyMatch(event -> event.kind() == Event.Kind.WAITING));
            guard.close();
            next.get(20, TimeUnit.SECONDS).close();
            Wait.until("all is told", () -> told.size() == 5);
        }
        assertEquals(
            List.of(Event.Kind.GRANTED, Event.Kind.WAITING, Event.Kind.RELEASED, Event.Kind.GRANTED, Event.Kind.RELEASED),
            told.stream().map(Event::kind).toList());
        assertEquals("x", told.get(0).name());
    }

    @Test
    void aLossIsLoggedWithoutAListener() throws Exception {
        try (Heard heard = new Heard(); Client client = Fencelock.connect("memory:logged")) {
            Guard guard = client.lock("x").ttl(Duration.ofSeconds(1)).renew(false).acquire();
            Wait.until("the loss is logged", () -> !heard.messages().isEmpty());
            assertEquals("x", assertThrows(LockLostException.class, guard::close).fields().get("name"));
            client.lock("x").acquire().close();
            // What is no warning is not logged by default.
            assertEquals(1, heard.messages().size(), heard.messages()::toString);
            String line = heard.messages().get(0);
            assertTrue(line.matches("lost x: token \\d+, held for \\d+\\.\\d s, its lease has ended \\(`renew=false`\\)"), line);
        }
    }

    @Test
    void everyEventIsLoggedWhereTheLogTakesIt() throws Exception {
        Logger logger = Logger.getLogger("fencelock");
        logger.setLevel(Level.FINE);
        try (Heard heard = new Heard(); Client client = Fencelock.connect("memory:fine")) {
            client.lock("x").acquire().close();
            Wait.until("all is logged", () -> heard.messages().size() == 2);
            assertTrue(heard.messages().get(0).matches("granted x: token \\d+, waited for .* s"), heard.messages().get(0));
            assertTrue(heard.messages().get(1).startsWith("released x: token "), heard.messages().get(1));
        } finally {
            logger.setLevel(null);
        }
    }

    @Test
    void aListenerThatFailsHurtsNobodyAndIsToldTheNext() throws Exception {
        List<Event> told = new CopyOnWriteArrayList<>();
        ClientOptions options = new ClientOptions().onEvent(event -> {
            told.add(event);
            if (told.size() % 2 == 0) {
                throw new IllegalStateException("a listener of a test fails on purpose");
            }
            throw new AssertionError("a listener of a test fails on purpose");
        });
        try (Heard heard = new Heard(); Client client = Fencelock.connect("memory:failing", options)) {
            client.lock("x").acquire().close();
            client.lock("x").acquire().close();
            Wait.until(() -> "all is told: " + told, () -> told.size() == 4 && heard.messages().size() == 4);
        }
    }
}
