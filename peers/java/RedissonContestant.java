import java.util.concurrent.CompletionStage;
import java.util.concurrent.atomic.AtomicLong;
import org.redisson.Redisson;
import org.redisson.api.RLock;
import org.redisson.api.RSemaphore;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;

/** Redisson's locks: a plain one, or by its kind fair, read, write or permit (of one). */
final class RedissonContestant implements Course.Contestant {
    private final AtomicLong owners = new AtomicLong(1 << 20);
    private final RedissonClient client;
    private final String kind;

    RedissonContestant(String url, String kind) {
        Config config = new Config();
        config.useSingleServer().setAddress(url);
        client = Redisson.create(config);
        this.kind = kind;
    }

    private RLock lock(String key) {
        return switch (kind) {
            case "" -> client.getLock(key);
            case "fair" -> client.getFairLock(key);
            case "read" -> client.getReadWriteLock(key).readLock();
            case "write" -> client.getReadWriteLock(key).writeLock();
            default -> throw new IllegalArgumentException("Redisson has no kind " + kind);
        };
    }

    @Override
    public Course.Release acquire(String key) throws Exception {
        if (kind.equals("permit")) {
            RSemaphore semaphore = client.getSemaphore(key);
            semaphore.trySetPermits(1);
            semaphore.acquire();
            return semaphore::release;
        }
        RLock lock = lock(key);
        lock.lock();
        return lock::unlock;
    }

    @Override
    public CompletionStage<?> pair(String key) {
        RLock lock = lock(key);
        long owner = owners.incrementAndGet();
        return lock.lockAsync(owner).thenCompose(locked -> lock.unlockAsync(owner));
    }
}
