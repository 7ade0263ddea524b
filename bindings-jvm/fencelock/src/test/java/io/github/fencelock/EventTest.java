package io.github.fencelock;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

/** What a listener is told. */
final class EventTest {
    @Test
    void whatHappensToALockIsToldInOrder() throws Exception {
        List<Event> told = new CopyOnWriteArrayList<>();
        try (Client client = Fencelock.connect("memory:events", new ClientOptions().onEvent(told::add))) {
            Guard guard = client.lock("x").acquire();
            CompletableFuture<Guard> next = client.lock("x").acquireAsync();
            Wait.until("one waits", () -> told.stream().anyMatch(event -> event.kind() == Event.Kind.WAITING));
            guard.close();
            next.get(10, TimeUnit.SECONDS).close();
            Wait.until("all is told", () -> told.size() == 5);
        }
        assertEquals(
            List.of(Event.Kind.GRANTED, Event.Kind.WAITING, Event.Kind.RELEASED, Event.Kind.GRANTED, Event.Kind.RELEASED),
            told.stream().map(Event::kind).toList());
        assertEquals("x", told.get(0).name());
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
