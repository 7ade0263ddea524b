package io.github.fencelock;

import java.lang.System.Logger.Level;
import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.ForkJoinWorkerThread;

/** The threads on which a user's code runs that is told of something: daemons, and more of them while some wait. */
final class Callbacks {
    private static final System.Logger LOGGER = System.getLogger("io.github.fencelock");

    private static final ForkJoinPool POOL = new ForkJoinPool(
        Math.max(2, Runtime.getRuntime().availableProcessors()), Callbacks::thread, (thread, error) -> complain(error), true);

    private Callbacks() {}

    private static ForkJoinWorkerThread thread(ForkJoinPool pool) {
        ForkJoinWorkerThread thread = ForkJoinPool.defaultForkJoinWorkerThreadFactory.newThread(pool);
        thread.setName("fencelock-callbacks-" + thread.getPoolIndex());
        return thread;
    }

    /** Runs something that completes a future, and with it whatever hangs on that. */
    static void execute(Runnable completing) {
        POOL.execute(completing);
    }

    /** Runs a user's own action there. */
    static void tell(Runnable action) {
        POOL.execute(() -> guarded(action));
    }

    /** Runs a user's own action here; what it throws is logged, as nobody else could hear of it. */
    static void guarded(Runnable action) {
        try {
            action.run();
        } catch (RuntimeException error) {
            complain(error);
        }
    }

    private static void complain(Throwable error) {
        LOGGER.log(Level.WARNING, "an action that fencelock was given has failed", error);
    }
}
