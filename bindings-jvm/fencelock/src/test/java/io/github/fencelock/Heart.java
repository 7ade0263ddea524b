package io.github.fencelock;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ConcurrentSkipListSet;

/** Beats every ten milliseconds while the machine, and the JVM, let a thread run that waits for nothing else. */
final class Heart implements AutoCloseable {
    private static final long BEAT = 10_000_000;

    private final ConcurrentSkipListSet<Long> beats = new ConcurrentSkipListSet<>();
    private final Thread thread = new Thread(this::beat, "heart");
    private volatile boolean done;

    Heart() {
        thread.setDaemon(true);
        thread.start();
    }

    private void beat() {
        while (!done) {
            beats.add(System.nanoTime());
            try {
                Thread.sleep(BEAT / 1_000_000);
            } catch (InterruptedException never) {
                throw new AssertionError(never);
            }
        }
    }

    /** For how long it did not beat as it should between two instants of {@link System#nanoTime}. */
    long stalled(long begin, long end) {
        long stalled = 0;
        long last = begin;
        List<Long> instants = new ArrayList<>(beats.subSet(begin, end));
        instants.add(end);
        for (long instant : instants) {
            stalled += Math.max(0, instant - last - 2 * BEAT);
            last = instant;
        }
        return stalled;
    }

    @Override
    public void close() {
        done = true;
    }
}
