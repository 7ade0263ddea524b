import com.google.gson.JsonObject;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.redisson.Redisson;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;

/**
 * Redisson. The option `kind` chooses among its locks: exclusive (the default), fair, read, write. Every guard is a thread of its own to
 * Redisson, as every guard of fencelock is its own owner.
 */
final class RedissonLibrary implements Library {
    private final AtomicLong threads = new AtomicLong();
    private final RedissonClient client;

    RedissonLibrary(String url, JsonObject options) {
        Config config = new Config();
        config.setLockWatchdogTimeout(options.get("ttl").getAsLong());
        config.setThreads(2).setNettyThreads(2);
        config.useSingleServer().setAddress(url)
            .setConnectionMinimumIdleSize(1).setSubscriptionConnectionMinimumIdleSize(1);
        client = Redisson.create(config);
    }

    @Override
    public Held take(String name, long wait, JsonObject options) throws Exception {
        String kind = options.has("kind") ? options.get("kind").getAsString() : "exclusive";
        boolean renew = options.has("renew") && options.get("renew").getAsBoolean();
        // Without a lease the watchdog renews, at a third of its timeout.
        long lease = renew ? -1 : options.get("ttl").getAsLong();
        RLock lock = lock(kind, name);
        long thread = threads.incrementAndGet();
        boolean won = lock.tryLockAsync(wait, lease, TimeUnit.MILLISECONDS, thread).get();
        return won ? () -> release(lock, thread) : null;
    }

    private RLock lock(String kind, String name) {
        return switch (kind) {
            case "exclusive" -> client.getLock(name);
            case "fair" -> client.getFairLock(name);
            case "read" -> client.getReadWriteLock(name).readLock();
            case "write" -> client.getReadWriteLock(name).writeLock();
            default -> throw new IllegalArgumentException("Redisson has no kind " + kind);
        };
    }

    private static String release(RLock lock, long thread) throws Exception {
        try {
            lock.unlockAsync(thread).get();
            return "released";
        } catch (ExecutionException error) {
            if (error.getCause() instanceof IllegalMonitorStateException) {
                return "already_lost";
            }
            throw error;
        }
    }
}
