package io.github.fencelock;

import java.lang.System.Logger.Level;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;

/** The events of one client on their way to the log and its listener: one after the other, in their order. */
final class Events implements Runnable {
    private static final Map<Long, Events> LISTENERS = new ConcurrentHashMap<>();
    /** Those of clients without a listener. */
    private static final Events LOGGED = new Events(event -> {});

    private final Consumer<Event> listener;
    private final Queue<Event> told = new ConcurrentLinkedQueue<>();
    private final AtomicInteger waiting = new AtomicInteger();

    private Events(Consumer<Event> listener) {
        this.listener = listener;
    }

    /** Whether a client with these options hears of events that are no warnings. */
    static boolean wantsAll(ClientOptions options) {
        return options.listener().isPresent() || Callbacks.logs(Level.DEBUG);
    }

    static void listen(long client, Consumer<Event> listener) {
        LISTENERS.put(client, new Events(listener));
    }

    static void forget(long client) {
        LISTENERS.remove(client);
    }

    static void tell(Map<String, Object> news) {
        Events events = LISTENERS.getOrDefault(Shape.number(news.get("client")), LOGGED);
        events.add(new Event(Shape.map(news.get("event"))));
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
            Callbacks.guarded(() -> {
                Callbacks.log(event.isWarning() ? Level.WARNING : Level.DEBUG, event, null);
                listener.accept(event);
            });
        } while (waiting.decrementAndGet() > 0);
    }
}
