package io.github.fencelock;

import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/**
 * Holds that the program has used. A callback, a coroutine or a token read before a long loop may be all that refers to them, so
 * without this set a collection would end a hold in use. Such a hold ends by its release or loss, with its client, or with
 * the process.
 */
final class InUse {
    /** At this size the set lets go of holds that were lost without a listener. */
    private static final int FULL = 1_000;

    private static final Set<Guard> HOLDS = ConcurrentHashMap.newKeySet();
    private static volatile int full = FULL;

    private InUse() {}

    static void keep(Guard hold) {
        HOLDS.add(hold);
        if (HOLDS.size() >= full) {
            HOLDS.removeIf(each -> !each.stands());
            full = Math.max(FULL, 2 * HOLDS.size());
        }
    }

    static void letGo(Guard hold) {
        HOLDS.remove(hold);
    }

    /** The client has given everything back: nothing is left of its holds. */
    static void letGo(Client client) {
        HOLDS.removeIf(hold -> hold.client == client);
    }
}
