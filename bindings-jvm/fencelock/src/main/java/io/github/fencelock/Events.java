package io.github.fencelock;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Consumer;

/** Who listens to the events of which client. */
final class Events {
    private static final Map<Long, Consumer<Event>> LISTENERS = new ConcurrentHashMap<>();

    private Events() {}

    static void listen(long client, Consumer<Event> listener) {
        LISTENERS.put(client, listener);
    }

    static void forget(long client) {
        LISTENERS.remove(client);
    }

    static void tell(Map<String, Object> news) {
        Consumer<Event> listener = LISTENERS.get(Shape.number(news.get("client")));
        if (listener != null) {
            Event event = Event.of(Shape.map(news.get("event")));
            Callbacks.tell(() -> listener.accept(event));
        }
    }
}
