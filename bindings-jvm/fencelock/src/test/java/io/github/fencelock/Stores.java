package io.github.fencelock;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Stream;

/** The stores that tests are run on, each time a fresh one, but for the server, whose locks have fresh names. */
public final class Stores {
    private static final RedisServer REDIS = new RedisServer();
    private static final AtomicInteger NUMBERS = new AtomicInteger();

    private static final Path FOLDER = folder();

    static {
        Runtime.getRuntime().addShutdownHook(new Thread(Stores::close));
    }

    private Stores() {}

    /** The server of all tests. */
    public static RedisServer redis() {
        return REDIS;
    }

    /** The URL of each. */
    public static Stream<String> all() {
        return Stream.of("memory:test-" + NUMBERS.incrementAndGet(), sqlite(), REDIS.url());
    }

    /** The URL of each that other processes reach. */
    public static Stream<String> shared() {
        return Stream.of(sqlite(), REDIS.url());
    }

    /** The keys left on the store's server by all names with this prefix, if the store has a server. */
    static List<String> left(String url, String prefix) {
        return url.equals(REDIS.url()) ? REDIS.leftovers(prefix) : List.of();
    }

    /** Nothing is. */
    public static void nothingIsLeft(String url, String prefix) {
        Wait.until(() -> "nothing is left: " + left(url, prefix), () -> left(url, prefix).isEmpty());
    }

    /** How many connections the store's server has, if it has one; ours is not among them. */
    public static int connections(String url) {
        return url.equals(REDIS.url()) ? ((String) REDIS.command("CLIENT", "LIST")).split("\n").length - 1 : 0;
    }

    static String sqlite() {
        return "sqlite:" + FOLDER.resolve("locks-" + NUMBERS.incrementAndGet() + ".db");
    }

    private static Path folder() {
        try {
            return Files.createTempDirectory("fencelock-test");
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    private static void close() {
        REDIS.close();
        try (Stream<Path> files = Files.list(FOLDER)) {
            for (Path file : files.toList()) {
                Files.delete(file);
            }
            Files.delete(FOLDER);
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    /** A name nobody else has. */
    public static String name() {
        return "lock-" + NUMBERS.incrementAndGet();
    }
}
