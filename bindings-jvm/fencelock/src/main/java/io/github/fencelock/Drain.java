package io.github.fencelock;

import java.lang.System.Logger.Level;
import java.lang.ref.Reference;
import java.nio.ByteBuffer;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/**
 * Where operations complete: one daemon thread waits in the core for news and hands each to whoever asked. No code of a
 * user runs on it.
 */
final class Drain {
    /** By the operation's number: who waits for it, or its answer, if that was there first. */
    private static final Map<Long, Object> EXPECTED = new ConcurrentHashMap<>();

    static {
        Attendant.of(Drain::run, "fencelock-drain").start();
        try {
            // It gives nothing back: other hooks still work under their locks.
            Runtime.getRuntime().addShutdownHook(Attendant.of(Natives::leave, "fencelock-exit"));
        } catch (IllegalStateException ending) {
            // A hook is the first to need the library.
            Natives.leave();
        }
    }

    private Drain() {}

    /** Somebody who wants an answer. Called on the drain's thread or by whoever submits, it must return at once. */
    interface Pending {
        void deliver(Answer answer);

        /** Whether it goes on when something else has failed: nobody waits for its end. */
        default boolean lasts() {
            return false;
        }
    }

    /** Sets an operation off; whoever waits for it keeps the client from being collected. */
    static long submit(Client client, Map<String, Object> operation, Pending pending) {
        byte[] packed = Parcel.write(operation);
        long number = Natives.submit(client.number, packed);
        expect(number, pending);
        Reference.reachabilityFence(client);
        return number;
    }

    static void expect(long number, Pending pending) {
        Object answer = EXPECTED.putIfAbsent(number, pending);
        if (answer != null) {
            EXPECTED.remove(number);
            pending.deliver((Answer) answer);
        }
    }

    private static void run() {
        ByteBuffer news = ByteBuffer.allocate(0);
        boolean again = false;
        while (true) {
            news.mark();
            try {
                if (news.hasRemaining()) {
                    tell(news);
                } else {
                    news = ByteBuffer.wrap(Natives.drain());
                }
                again = false;
            } catch (Throwable defect) {
                Callbacks.log(Level.ERROR, "an answer of fencelock's core may be lost", defect);
                Callbacks.guarded(() -> fail(Answer.defect(defect)));
                // There may be memory for it the next time. What cannot be read twice is lost, with all behind it.
                if (again) {
                    news.position(news.limit());
                } else {
                    news.reset();
                }
                again = true;
            }
        }
    }

    private static void tell(ByteBuffer news) {
        long number = news.getLong();
        Answer answer = Answer.read(news);
        if (number == 0) {
            Events.tell(Shape.map(answer.content()));
            return;
        }
        Object pending = EXPECTED.putIfAbsent(number, answer);
        if (pending != null) {
            EXPECTED.remove(number);
            // One that fails takes none of the others with it.
            Callbacks.guarded(() -> ((Pending) pending).deliver(answer));
        }
    }

    /**
     * Nobody is to wait for an answer that may never come. If it does, whoever waited declines it; until then the operation is
     * given up.
     */
    static void fail(Answer defect) {
        EXPECTED.forEach((number, pending) -> {
            if (pending instanceof Pending waits && !waits.lasts()) {
                Callbacks.guarded(() -> waits.deliver(defect));
                Natives.abort(number);
            }
        });
    }
}
