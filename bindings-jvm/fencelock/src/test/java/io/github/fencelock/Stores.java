package io.github.fencelock;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Stream;

/** The stores that tests are run on, each time a fresh one, but for the server, whose locks have fresh names. */
public final class Stores {
    private static final RedisServer REDIS = new RedisServer();
    private static final AtomicInteger NUMBERS = new AtomicInteger();

    static {
        Runtime.getRuntime().addShutdownHook(new Thread(REDIS::close));
    }

    private Stores() {}

    static RedisServer redis() {
        return REDIS;
    }

    /** The URL of each. */
    public static Stream<String> all() {
        return Stream.of("memory:test-" + NUMBERS.incrementAndGet(), sqlite(), REDIS.url());
    }

    static String sqlite() {
        try {
            return "sqlite:" + Files.createTempDirectory("fencelock-test").resolve("locks.db");
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    /** A name nobody else has. */
    static String name() {
        return "lock-" + NUMBERS.incrementAndGet();
    }
}
