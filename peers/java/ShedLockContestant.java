import java.time.Duration;
import java.time.Instant;
import java.util.Optional;
import java.util.concurrent.CompletionStage;
import net.javacrumbs.shedlock.core.LockConfiguration;
import net.javacrumbs.shedlock.core.SimpleLock;
import net.javacrumbs.shedlock.provider.jdbctemplate.JdbcTemplateLockProvider;
import org.springframework.jdbc.core.JdbcTemplate;

/** ShedLock by the database's time. It does not wait for a lock: it is asked again as often as Spring's registry asks. */
final class ShedLockContestant implements Course.Contestant {
    private static final Duration TTL = Duration.ofSeconds(30);
    private static final long PAUSE = 100;

    private final JdbcTemplateLockProvider provider;

    ShedLockContestant(String jdbc) {
        provider = new JdbcTemplateLockProvider(JdbcTemplateLockProvider.Configuration.builder()
            .withJdbcTemplate(new JdbcTemplate(Pool.of(jdbc))).usingDbTime().build());
    }

    @Override
    public Course.Release acquire(String key) throws Exception {
        while (true) {
            Optional<SimpleLock> lock =
                provider.lock(new LockConfiguration(Instant.now(), key, TTL, Duration.ZERO));
            if (lock.isPresent()) {
                return lock.get()::unlock;
            }
            Thread.sleep(PAUSE);
        }
    }

    @Override
    public CompletionStage<?> pair(String key) {
        throw new UnsupportedOperationException("ShedLock has no locks without threads");
    }
}
