package io.github.fencelock;

import java.lang.System.Logger.Level;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;

/**
 * The threads on which a user's code runs that is told of something: daemons. A few always, so that what is told never has to
 * start one; while they are not enough, because some of them wait, a watch makes more, so that nobody is told late of a loss.
 */
final class Callbacks {
    private static final System.Logger LOGGER = System.getLogger("fencelock");

    private static final int FEW = Math.min(Math.max(2, Runtime.getRuntime().availableProcessors()), 8);
    /** So many may wait at once. */
    static final int MOST = 256;
    /** The time a queued callback may wait for a thread before the pool starts more threads. */
    private static final long PATIENCE = TimeUnit.MILLISECONDS.toNanos(10);
    private static final long IDLE_SECONDS = 5;

    private static final AtomicInteger THREADS = new AtomicInteger();
    private static final LinkedBlockingQueue<Runnable> TOLD = new LinkedBlockingQueue<>();
    private static final ThreadPoolExecutor POOL = new ThreadPoolExecutor(
        FEW, MOST, IDLE_SECONDS, TimeUnit.SECONDS, TOLD,
        told -> Attendant.of(told, "fencelock-callbacks-" + THREADS.incrementAndGet()));
    private static final Thread WATCH = Attendant.of(Callbacks::watch, "fencelock-callbacks-watch");

    /** Whether the watch looks after what waits for a thread. */
    private static volatile boolean watched;

    static {
        POOL.prestartAllCoreThreads();
        WATCH.start();
    }

    private Callbacks() {}

    /** Runs there what completes a future, and with it whatever hangs on that; or an action of a user's own. */
    static void execute(Runnable action) {
        // Not by the pool's own way in, which may start a thread and fail.
        TOLD.add(() -> guarded(action));
        if (!watched && !TOLD.isEmpty()) {
            watched = true;
            LockSupport.unpark(WATCH);
        }
    }

    /** Runs a user's own action here; what it throws is logged, as nobody else could hear of it. */
    static void guarded(Runnable action) {
        try {
            action.run();
        } catch (Throwable error) {
            complain(error);
        }
    }

    private static void complain(Throwable error) {
        log(Level.WARNING, "an action that fencelock was given has failed", error);
    }

    /** Whether the log takes this level. */
    static boolean logs(Level level) {
        return LOGGER.isLoggable(level);
    }

    /** Logs, whatever a program's logger may do. The text is made only if the log takes the level. */
    static void log(Level level, Object what, Throwable error) {
        try {
            LOGGER.log(level, what::toString, error);
        } catch (Throwable nobodyToTell) {
            // A program's own logger, which is told of its failure by nobody else either.
        }
    }

    private static void watch() {
        long ended = 0;
        while (true) {
            if (TOLD.isEmpty()) {
                POOL.setCorePoolSize(FEW);
                watched = false;
                // Whoever came since has seen either that it is watched or that it is not.
                if (TOLD.isEmpty()) {
                    LockSupport.park();
                }
                watched = true;
                ended = POOL.getCompletedTaskCount();
            }
            LockSupport.parkNanos(PATIENCE);
            long now = POOL.getCompletedTaskCount();
            if (TOLD.size() > now - ended) {
                guarded(Callbacks::grow);
            }
            ended = now;
        }
    }

    private static void grow() {
        POOL.setCorePoolSize(Math.min(2 * POOL.getCorePoolSize(), MOST));
        for (int wait = TOLD.size(); wait > 0 && POOL.prestartCoreThread(); wait--) {
            // Each of them starts one more.
        }
    }
}
