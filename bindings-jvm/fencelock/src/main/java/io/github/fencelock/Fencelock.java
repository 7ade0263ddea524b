package io.github.fencelock;

import java.util.Map;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;

/**
 * Locks between processes and machines: every grant carries a fencing token, every guard knows how long it may be relied on,
 * and nobody who gives up or is interrupted leaves anything behind.
 *
 * <pre>{@code
 * try (Client client = Fencelock.connect("memory:"); // or "redis://127.0.0.1", "sqlite:locks.db"
 *      Guard guard = client.lock("orders:42").acquire(Duration.ofSeconds(5))) {
 *     System.out.println("charging order 42 with token " + guard.token());
 * }
 * }</pre>
 *
 * <p>Any thread may wait, virtual ones too: no call but those of this class's own daemon threads waits in native code.
 * Before the JVM exits everything that is still held is released, as far as a second reaches; the rest ends with its lease.
 */
public final class Fencelock {
    private Fencelock() {}

    /**
     * Connects to the store a URL names: {@code memory:} (this process), {@code sqlite:locks.db} (this machine),
     * {@code redis://host:6379}, {@code etcd://a,b,c}, {@code zookeeper://a,b,c/locks}, {@code postgres://user@host/database}.
     * Options stand in the query: {@code redis://host?ttl=10s&fair=false}.
     *
     * @throws InvalidArgumentException if the URL cannot be understood
     * @throws UnavailableException if the store cannot be reached
     * @throws AuthException if the store refuses the credentials
     * @throws UnsupportedException if the jar has no library for this platform
     */
    public static Client connect(String url) {
        return connect(url, new ClientOptions());
    }

    /** The same with options, which outweigh those in the URL. */
    public static Client connect(String url, ClientOptions options) {
        return connecting(url, options).get();
    }

    /** As {@link #connect(String)}, without waiting. */
    public static CompletableFuture<Client> connectAsync(String url) {
        return connectAsync(url, new ClientOptions());
    }

    /** As {@link #connect(String, ClientOptions)}, without waiting. */
    public static CompletableFuture<Client> connectAsync(String url, ClientOptions options) {
        return connecting(url, options).async();
    }

    private static Request<Client> connecting(String url, ClientOptions options) {
        Objects.requireNonNull(url, "the URL is null");
        NativeLibrary.require();
        byte[] connection = Parcel.write(Map.of(
            "url", url,
            "options", options.given(),
            "app", options.app(),
            "language", options.language(),
            "events", Events.wantsAll(options)));
        Request.Submission submission = pending -> {
            long number = Natives.connect(connection);
            Drain.expect(number, pending);
            return number;
        };
        return new Request<>(submission, number -> new Client(Shape.number(number), options), client -> {}, Client::decline);
    }
}
