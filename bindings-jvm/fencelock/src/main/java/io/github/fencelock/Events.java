package io.github.fencelock;

import java.util.Map;
import java.util.Queue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;

/** The events of one client on their way to its listener: one after the other, in their order. */
final class Events implements Runnable {
    private static final Map<Long, Events> LISTENERS = new ConcurrentHashMap<>();

    private final Consumer<Event> listener;
    private final Queue<Event> told = new ConcurrentLinkedQueue<>();
    private final AtomicInteger waiting = new AtomicInteger();

    private Events(Consumer<Event> listener) {
        this.listener = listener;
    }

    static void listen(long client, Consumer<Event> listener) {
        LISTENERS.put(client, new Events(listener));
    }

    static void forget(long client) {
        LISTENERS.remove(client);
    }

    static void tell(Map<String, Object> news) {
        Events events = LISTENERS.get(Shape.number(news.get("client")));
        if (events != null) {
            events.add(Event.of(Shape.map(news.get("event"))));
        }
    }

    private void add(Event event) {
        told.add(event);
        if (waiting.getAndIncrement() == 0) {
            Callbacks.execute(this);
        }
    }

    @Override
    public void run() {
        do {
            Event event = told.remove();
            Callbacks.guarded(() -> listener.accept(event));
        } while (waiting.decrementAndGet() > 0);
    }
}
