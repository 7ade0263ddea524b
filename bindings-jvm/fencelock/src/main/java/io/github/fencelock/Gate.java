package io.github.fencelock;

import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.function.Function;

/**
 * Writes keys on the Redis server of a client, each only with a token that is not older than the newest one that has written it. Made by
 * {@link Client#gate}.
 *
 * <p>The check and the write are one script. An older token fails with {@link LockLostException}, and nothing is written; equal ones
 * pass. The token may be that of a lock on any other store. Beside every key {@code K} that was written so lies its newest token,
 * under <code>fencelock:{tag}:gate:K</code> and without an end: delete it together with the key.
 */
public final class Gate {
    private final Client client;

    Gate(Client client) {
        this.client = client;
    }

    /** Sets a key to a text. */
    public void set(String key, long token, String value) {
        setting(key, token, value).get();
    }

    /** As {@link #set}, as a future. */
    public CompletableFuture<Void> setAsync(String key, long token, String value) {
        return setting(key, token, value).async();
    }

    private Request<Void> setting(String key, long token, String value) {
        return writing(key, token, Map.of("set", value), written -> null);
    }

    /** Deletes a key; whether it was there. */
    public boolean delete(String key, long token) {
        return deleting(key, token).get();
    }

    /** As {@link #delete}, as a future. */
    public CompletableFuture<Boolean> deleteAsync(String key, long token) {
        return deleting(key, token).async();
    }

    private Request<Boolean> deleting(String key, long token) {
        return writing(key, token, "delete", written -> (Boolean) written);
    }

    /** Adds to a whole number, which is 0 if the key is not there; answers the sum. */
    public long increment(String key, long token, long by) {
        return adding(key, token, by).get();
    }

    /** As {@link #increment}, as a future. */
    public CompletableFuture<Long> incrementAsync(String key, long token, long by) {
        return adding(key, token, by).async();
    }

    private Request<Long> adding(String key, long token, long by) {
        return writing(key, token, Map.of("increment", by), Shape::number);
    }

    private <T> Request<T> writing(String key, long token, Object write, Function<Object, T> understood) {
        return Request.of(client, Map.of("op", "gate", "resource", key, "token", token, "write", write), understood);
    }
}
