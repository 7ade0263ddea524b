package io.github.fencelock;

import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.concurrent.CompletableFuture;
import java.util.function.UnaryOperator;

/**
 * A value by name, made by {@link Client#version}, that is replaced only if nobody was faster. Nobody holds anything: whoever
 * changes the value names the version it has read, and is told if somebody was faster.
 *
 * <p>A value is what JSON knows, so that every language reads what another wrote: {@code null}, {@link Boolean},
 * {@link String}, {@link Long}, {@link Double} ({@link java.math.BigInteger} for whole numbers beyond a long),
 * {@link java.util.List}, {@link Map} with texts as keys. It has at most 1 MiB.
 *
 * <pre>{@code
 * try (Client client = Fencelock.connect("memory:")) {
 *     Versioned balance = client.version("balance:42");
 *     balance.update(value -> (value == null ? 0 : (long) value) + 100);
 *     Optional<Snapshot> taken = balance.update(value -> (long) value < 130 ? null : (long) value - 130);
 *     assert taken.isEmpty() : "nothing is written if there is nothing to write";
 *     assert balance.read().orElseThrow().value().equals(100L);
 * }
 * }</pre>
 */
public final class Versioned implements VersionOptions<Versioned> {
    private final Client client;
    private final String name;
    private final Map<String, Object> options;

    Versioned(Client client, String name, Map<String, Object> options) {
        this.client = client;
        this.name = name;
        this.options = options;
    }

    @Override
    public Versioned option(String name, Object value) {
        return new Versioned(client, this.name, Options.with(options, name, value));
    }

    /** The name. */
    public String name() {
        return name;
    }

    /** The value and its version; empty if there is none. */
    public Optional<Snapshot> read() {
        return reading().get();
    }

    /** As {@link #read}, as a future. */
    public CompletableFuture<Optional<Snapshot>> readAsync() {
        return reading().async();
    }

    private Request<Optional<Snapshot>> reading() {
        return Request.of(client, operation("read_version"), Snapshot::of);
    }

    /** Writes the value if its version is still {@code expected}; with none expected, if there is no value. */
    public Swapped compareAndSet(OptionalLong expected, Object value) {
        return setting(expected, value).get();
    }

    /** As {@link #compareAndSet}, as a future. */
    public CompletableFuture<Swapped> compareAndSetAsync(OptionalLong expected, Object value) {
        return setting(expected, value).async();
    }

    private Request<Swapped> setting(OptionalLong expected, Object value) {
        Map<String, Object> operation = operation("compare_and_set");
        operation.put("expected", expected.isPresent() ? expected.getAsLong() : null);
        operation.put("value", value);
        return Request.of(client, operation, Versioned::swapped);
    }

    private static Swapped swapped(Object answer) {
        return new Swapped(Shape.map(answer));
    }

    /** Deletes the value if its version is still {@code expected}. Versions rise on from there. */
    public Swapped delete(long expected) {
        return deleting(expected).get();
    }

    /** As {@link #delete}, as a future. */
    public CompletableFuture<Swapped> deleteAsync(long expected) {
        return deleting(expected).async();
    }

    private Request<Swapped> deleting(long expected) {
        Map<String, Object> operation = operation("delete_version");
        operation.put("expected", expected);
        return Request.of(client, operation, Versioned::swapped);
    }

    /**
     * Replaces the value by what {@code change} makes of it; it is given {@code null} if there is none. If somebody was
     * faster, {@code change} is asked again with what is there by then, after a short random pause, at most {@code retries}
     * times. If it answers {@code null}, everything stays as it is, and the answer is empty.
     *
     * @throws ConflictException if somebody else was faster every time
     * @throws UnavailableException not retryable: the store did not answer, and whether the value was changed could not be
     *     found out
     */
    public Optional<Snapshot> update(UnaryOperator<Object> change) {
        Optional<Snapshot> seen = read();
        for (int tries = 1;; tries++) {
            Object made = change.apply(seen.map(Snapshot::value).orElse(null));
            if (made == null) {
                return Optional.empty();
            }
            Swapped swapped = compareAndSet(version(seen), made);
            if (swapped.isDone()) {
                return Optional.of(Snapshot.written(made, swapped.version().getAsLong()));
            }
            resting(tries).get();
            seen = swapped.found();
        }
    }

    /**
     * As {@link #update}, as a future; {@code change} runs on a thread of fencelock's callbacks. To cancel the future ends the
     * update where it stands: a change that is on its way may still be written.
     */
    public CompletableFuture<Optional<Snapshot>> updateAsync(UnaryOperator<Object> change) {
        return new Update(this, change).begin();
    }

    static OptionalLong version(Optional<Snapshot> seen) {
        return seen.map(snapshot -> OptionalLong.of(snapshot.version())).orElseGet(OptionalLong::empty);
    }

    /** The pause after so many tries that came too late. */
    Request<Void> resting(int tries) {
        Map<String, Object> operation = operation("back_off");
        operation.put("tries", tries);
        return Request.of(client, operation, rested -> null);
    }

    private Map<String, Object> operation(String word) {
        Map<String, Object> operation = new LinkedHashMap<>();
        operation.put("op", word);
        operation.put("name", name);
        operation.put("options", options);
        return operation;
    }
}
