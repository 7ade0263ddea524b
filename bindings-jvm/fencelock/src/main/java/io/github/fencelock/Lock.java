package io.github.fencelock;

import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;

/**
 * A lock by name, made by a {@link Client}. Set its options, then acquire it, as often as you like. It is immutable: every
 * option gives another one.
 *
 * <pre>{@code
 * try (Client client = Fencelock.connect("memory:")) {
 *     Lock lock = client.lock("orders:42").ttl(Duration.ofSeconds(30)).fair(false);
 *     try (Guard guard = lock.acquire()) {
 *         System.out.println("charging order 42 with token " + guard.token());
 *     }
 *     lock.tryAcquire().ifPresent(Guard::close);
 * }
 * }</pre>
 */
public final class Lock extends Acquirable<Lock> implements LockOptions<Lock> {
    private final String name;
    /** As what it is asked for. */
    private final Map<String, Object> form;
    /** Kept for as long as it may be entered. */
    private final Scope scope;

    Lock(Client client, String name, Map<String, Object> form, Scope scope, Map<String, Object> options) {
        super(client, options);
        this.name = name;
        this.form = form;
        this.scope = scope;
    }

    static Lock of(Client client, String name, Map<String, Object> form) {
        return new Lock(client, Objects.requireNonNull(name, Client.NO_NAME), form, null, Map.of());
    }

    /** The name. */
    public String name() {
        return name;
    }

    /** Whether anybody holds the lock now; of a semaphore, any permit. By the time of the answer that may have changed. */
    public boolean isLocked() {
        return looking().get();
    }

    /** As {@link #isLocked}, as a future. */
    public CompletableFuture<Boolean> isLockedAsync() {
        return looking().async();
    }

    private Request<Boolean> looking() {
        Map<String, Object> operation = new LinkedHashMap<>(form);
        operation.putAll(Map.of("op", "is_locked", "name", name, "options", options()));
        return Request.of(client, operation, Boolean.class::cast);
    }

    /** The holders of the lock and its waiters. Changes nothing. */
    public LockState inspect() {
        return inspection().get();
    }

    /** As {@link #inspect}, as a future. */
    public CompletableFuture<LockState> inspectAsync() {
        return inspection().async();
    }

    private Request<LockState> inspection() {
        return Request.of(client, Map.of("op", "inspect", "name", name, "options", options()), LockState::of);
    }

    /**
     * This lock for code that knows {@link java.util.concurrent.locks.Lock}. There it belongs to the thread that acquired it,
     * for all views of this client; a mutex may be entered again by it. {@code unlock} throws {@link LockLostException} if
     * the lock had been lost; in a {@code finally} that replaces what the body has thrown, so prefer {@link #acquire()} in a
     * {@code try}. There are no conditions.
     */
    public java.util.concurrent.locks.Lock asLock() {
        return new ThreadLock(this);
    }

    /** As what it is asked for, and by which name: the same for all that are one lock to a thread. */
    Map<String, Object> identity() {
        return asking(false);
    }

    boolean isMutex() {
        return !form.containsKey("mode");
    }

    /** The same lock, entered in a scope. */
    Lock in(Scope entered) {
        Map<String, Object> scoped = new LinkedHashMap<>(form);
        scoped.put("scope", entered.number());
        return new Lock(client, name, scoped, entered, options());
    }

    @Override
    Lock with(Map<String, Object> options) {
        return new Lock(client, name, form, scope, options);
    }

    @Override
    Map<String, Object> asking(boolean once) {
        Map<String, Object> operation = new LinkedHashMap<>(form);
        operation.put("op", once ? "try_acquire" : "acquire");
        operation.put("name", name);
        return operation;
    }

    @Override
    String shown() {
        return name;
    }
}
