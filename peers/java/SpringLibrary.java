import com.google.gson.JsonObject;
import java.net.URI;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Lock;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;
import org.springframework.integration.redis.util.RedisLockRegistry;
import org.springframework.integration.redis.util.RedisLockRegistry.RedisLockType;
import org.springframework.scheduling.concurrent.ThreadPoolTaskScheduler;

/**
 * Spring Integration's RedisLockRegistry, whose waiters are told by a message. A registry has one expiry for all its
 * locks, so there is one for each that is asked for. Its locks belong to threads, so every guard keeps one.
 */
final class SpringLibrary implements Library {
    private static final String REGISTRY = "spring";

    private final LettuceConnectionFactory server;
    private final ThreadPoolTaskScheduler renewals = new ThreadPoolTaskScheduler();
    private final Map<String, RedisLockRegistry> registries = new ConcurrentHashMap<>();

    SpringLibrary(String url) {
        URI address = URI.create(url);
        server = new LettuceConnectionFactory(address.getHost(), address.getPort());
        server.afterPropertiesSet();
        server.start();
        renewals.setDaemon(true);
        renewals.initialize();
    }

    private RedisLockRegistry registry(long ttl, boolean renew) {
        return registries.computeIfAbsent(ttl + " " + renew, key -> {
            RedisLockRegistry registry = new RedisLockRegistry(server, REGISTRY, ttl);
            registry.setRedisLockType(RedisLockType.PUB_SUB_LOCK);
            if (renew) {
                registry.setRenewalTaskScheduler(renewals);
            }
            return registry;
        });
    }

    @Override
    public Held take(String name, long wait, JsonObject options) throws Exception {
        boolean renew = options.has("renew") && options.get("renew").getAsBoolean();
        Lock lock = registry(options.get("ttl").getAsLong(), renew).obtain(name);
        return ThreadHeld.take(() -> lock.tryLock(wait, TimeUnit.MILLISECONDS), lock::unlock);
    }
}
