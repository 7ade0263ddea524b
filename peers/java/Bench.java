import java.util.concurrent.CompletionStage;
import java.util.concurrent.atomic.AtomicLong;
import org.redisson.Redisson;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;

/** Redisson's RLock on the bench's courses. */
public final class Bench implements Course.Contestant {
    private final AtomicLong owners = new AtomicLong(1 << 20);
    private final RedissonClient client;

    private Bench(String url) {
        Config config = new Config();
        config.useSingleServer().setAddress(url);
        client = Redisson.create(config);
    }

    @Override
    public Course.Release acquire(String key) {
        RLock lock = client.getLock(key);
        lock.lock();
        return lock::unlock;
    }

    @Override
    public CompletionStage<?> pair(String key) {
        RLock lock = client.getLock(key);
        long owner = owners.incrementAndGet();
        return lock.lockAsync(owner).thenCompose(locked -> lock.unlockAsync(owner));
    }

    public static void main(String[] words) throws Exception {
        Course.run(new Bench(Course.url(words)), words, 1);
    }
}
