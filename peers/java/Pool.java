import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import javax.sql.DataSource;

/** Connections to a database as applications have them: Spring Boot's pool at its defaults. */
final class Pool {
    private Pool() {}

    static DataSource of(String jdbc) {
        HikariConfig config = new HikariConfig();
        config.setJdbcUrl(jdbc);
        // Whoever waits for one of the connections is as patient as whoever waits for a lock.
        config.setConnectionTimeout(0);
        return new HikariDataSource(config);
    }
}
