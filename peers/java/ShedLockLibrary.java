import com.google.gson.JsonObject;
import java.time.Duration;
import java.time.Instant;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import net.javacrumbs.shedlock.core.LockConfiguration;
import net.javacrumbs.shedlock.core.SimpleLock;
import net.javacrumbs.shedlock.provider.jdbctemplate.JdbcTemplateLockProvider;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.jdbc.datasource.DriverManagerDataSource;

/** ShedLock on a database, by the database's time. It does not wait for a lock: whoever wants to asks again. */
final class ShedLockLibrary implements Library {
    private static final long PAUSE = 10;

    private final JdbcTemplateLockProvider provider;

    ShedLockLibrary(String url) {
        JdbcTemplate database = new JdbcTemplate(new DriverManagerDataSource(url));
        provider = new JdbcTemplateLockProvider(JdbcTemplateLockProvider.Configuration.builder()
            .withJdbcTemplate(database).usingDbTime().build());
    }

    @Override
    public Held take(String name, long wait, JsonObject options) throws Exception {
        Duration ttl = Duration.ofMillis(options.get("ttl").getAsLong());
        long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(wait);
        while (true) {
            Optional<SimpleLock> lock =
                provider.lock(new LockConfiguration(Instant.now(), name, ttl, Duration.ZERO));
            if (lock.isPresent()) {
                return () -> {
                    lock.get().unlock();
                    return "released";
                };
            }
            if (System.nanoTime() >= end) {
                return null;
            }
            Thread.sleep(PAUSE);
        }
    }
}
