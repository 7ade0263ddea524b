package io.github.fencelock;

import java.lang.ref.Reference;
import java.util.Map;

/**
 * Where reentrancy ends: a lock held in a scope is entered again by anybody who has the scope, without a round trip, with
 * the same token and deadline, past everybody who waits. It is free when every guard of it was given back. A scope is not
 * bound to a thread; hand it to those who shall enter too.
 *
 * <pre>{@code
 * try (Client client = Fencelock.connect("memory:")) {
 *     Scope scope = client.scope();
 *     try (Guard outer = scope.lock("ledger").acquire(); Guard inner = scope.lock("ledger").acquire()) {
 *         assert inner.token() == outer.token();
 *     }
 * }
 * }</pre>
 */
public final class Scope {
    private final Client client;
    private final long number;
    private final Leftover leftover;

    Scope(Client client) {
        this.client = client;
        this.number = Natives.openScope(client.number);
        long of = client.number;
        long scope = number;
        // A scope holds nothing itself, so it may be left to the collector.
        this.leftover = Leftover.of(this, () -> Natives.closeScope(of, scope), null);
        Reference.reachabilityFence(client);
    }

    long number() {
        return number;
    }

    /** A mutex by name that this scope may enter again. On the store it is the ordinary mutex of that name. */
    public Lock lock(String name) {
        return Lock.of(client, name, Map.of()).in(this);
    }

    /** Nobody enters by it any more. */
    void close() {
        leftover.settle();
        Natives.closeScope(client.number, number);
    }
}
