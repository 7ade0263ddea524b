package io.github.fencelock;

import java.util.Map;
import java.util.concurrent.CompletableFuture;

/** The guard of a leader: {@link #isHeld} says whether it still leads at this very moment. Closing it gives it up. */
public final class Leadership extends Hold {
    Leadership(Client client, String name, Map<String, Object> granted) {
        super(client, name, granted);
    }

    /**
     * Gives the leadership up, so that the next candidate leads, and waits for the store's answer.
     *
     * @throws LockNotHeldException if it was given up before
     */
    public Released resign() {
        givesBack();
        return resigning().get();
    }

    /** As {@link #resign}, without waiting. */
    public CompletableFuture<Released> resignAsync() {
        givesBack();
        return resigning().async();
    }

    private Request<Released> resigning() {
        return giving(Map.of("op", "release", "guard", number));
    }

    /**
     * Gives the leadership up, unless that was done before.
     *
     * @throws LockLostException if it had been lost
     */
    @Override
    public void close() {
        if (givesBack()) {
            resigning().get().check();
        }
    }
}
