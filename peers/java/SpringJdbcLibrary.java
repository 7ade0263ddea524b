import com.google.gson.JsonObject;
import java.time.Duration;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Lock;
import org.springframework.integration.jdbc.lock.DefaultLockRepository;
import org.springframework.integration.jdbc.lock.JdbcLockRegistry;
import org.springframework.jdbc.datasource.DriverManagerDataSource;
import org.springframework.jdbc.support.JdbcTransactionManager;

/** Spring Integration's JdbcLockRegistry. Its locks belong to threads, so every guard keeps one. */
final class SpringJdbcLibrary implements Library {
    private final JdbcLockRegistry registry;

    SpringJdbcLibrary(String url, JsonObject options) {
        DriverManagerDataSource database = new DriverManagerDataSource(url);
        DefaultLockRepository repository = new DefaultLockRepository(database);
        repository.setTransactionManager(new JdbcTransactionManager(database));
        repository.afterPropertiesSet();
        repository.afterSingletonsInstantiated();
        registry = new JdbcLockRegistry(repository, Duration.ofMillis(options.get("ttl").getAsLong()));
    }

    @Override
    public Held take(String name, long wait, JsonObject options) throws Exception {
        Lock lock = registry.obtain(name);
        return ThreadHeld.take(() -> lock.tryLock(wait, TimeUnit.MILLISECONDS), lock::unlock);
    }
}
