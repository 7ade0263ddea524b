import java.util.ConcurrentModificationException;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/** A lock that belongs to a thread, which is kept until it is given back. */
final class ThreadHeld {
    private ThreadHeld() {}

    /** Takes a lock in a thread of its own; null if it cannot be had. */
    static Library.Held take(Callable<Boolean> lock, Runnable unlock) throws Exception {
        ExecutorService thread = Executors.newSingleThreadExecutor();
        if (!thread.submit(lock).get()) {
            thread.shutdown();
            return null;
        }
        return () -> {
            try {
                thread.submit(unlock).get();
                return "released";
            } catch (ExecutionException error) {
                if (error.getCause() instanceof ConcurrentModificationException) {
                    return "already_lost";
                }
                throw error;
            } finally {
                thread.shutdown();
            }
        };
    }
}
