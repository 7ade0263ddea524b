import java.util.concurrent.CompletionStage;
import java.util.concurrent.locks.Lock;
import javax.sql.DataSource;
import org.springframework.integration.jdbc.lock.DefaultLockRepository;
import org.springframework.integration.jdbc.lock.JdbcLockRegistry;
import org.springframework.jdbc.support.JdbcTransactionManager;

/** Spring Integration's JdbcLockRegistry, whose locks belong to threads. Whoever waits asks every 100 ms. */
final class SpringJdbcContestant implements Course.Contestant {
    private final JdbcLockRegistry registry;

    SpringJdbcContestant(String jdbc) {
        DataSource database = Pool.of(jdbc);
        DefaultLockRepository repository = new DefaultLockRepository(database);
        repository.setTransactionManager(new JdbcTransactionManager(database));
        repository.afterPropertiesSet();
        repository.afterSingletonsInstantiated();
        registry = new JdbcLockRegistry(repository);
    }

    @Override
    public Course.Release acquire(String key) throws Exception {
        Lock lock = registry.obtain(key);
        lock.lock();
        return lock::unlock;
    }

    @Override
    public CompletionStage<?> pair(String key) {
        throw new UnsupportedOperationException("its locks belong to threads");
    }
}
