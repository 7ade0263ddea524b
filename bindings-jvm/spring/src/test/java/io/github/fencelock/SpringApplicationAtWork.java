package io.github.fencelock;

import java.time.Duration;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Lazy;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;

/**
 * A web application whose requests work under a lock. The properties {@code test.url} and {@code test.name} name store and lock;
 * {@code test.client} is {@code bean}, which Spring closes, or {@code static}, which nobody does.
 */
@SpringBootApplication
@RestController
public class SpringApplicationAtWork {
    /** Longer than the lease, which has to be renewed meanwhile. */
    private static final Duration WORK = Duration.ofSeconds(6);
    private static final Duration TTL = Duration.ofSeconds(5);

    private static final String NAME = System.getProperty("test.name");

    private static Client unmanaged;

    private final Client client;

    /** With the client that is asked for. */
    public SpringApplicationAtWork(ObjectProvider<Client> bean) {
        client = unmanaged == null ? bean.getObject() : unmanaged;
    }

    /** Starts it, on a port that it says. */
    public static void main(String[] words) {
        if (System.getProperty("test.client").equals("static")) {
            unmanaged = Fencelock.connect(System.getProperty("test.url"));
        }
        String port = SpringApplication.run(SpringApplicationAtWork.class, "--server.port=0", "--server.shutdown=graceful")
            .getEnvironment().getProperty("local.server.port");
        System.out.println("port " + port);
    }

    /** Spring closes it when the requests have ended. */
    @Bean
    @Lazy
    static Client client() {
        return Fencelock.connect(System.getProperty("test.url"));
    }

    /** Works under the lock. */
    @GetMapping("/lock")
    public String lock() throws InterruptedException {
        return client.lock(NAME).ttl(TTL).withLock(SpringApplicationAtWork::work);
    }

    /** Works in a run of the job. */
    @GetMapping("/job")
    public String job() throws InterruptedException {
        return client.job(NAME, Duration.ofDays(1)).ttl(TTL).withRun(SpringApplicationAtWork::work) ? "done" : "not due";
    }

    private static String work(Guard hold) throws InterruptedException {
        System.out.println("working");
        for (long end = System.nanoTime() + WORK.toNanos(); System.nanoTime() < end; Thread.sleep(5)) {
            hold.check();
        }
        hold.check();
        System.out.println("worked " + System.nanoTime());
        return "done";
    }
}
