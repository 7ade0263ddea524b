package io.github.fencelock;

import java.util.concurrent.TimeUnit;

/** An application that comes and goes beside a library that stays: its own class loader has this class alone. */
public final class Guest implements Runnable {
    private static final InheritableThreadLocal<Object> MINE = new InheritableThreadLocal<>();

    @Override
    public void run() {
        MINE.set(this);
        try (Client client = Fencelock.connect("memory:", new ClientOptions().onEvent(event -> {}))) {
            client.lock("x").acquire().close();
            client.lock("x").acquireAsync().get(10, TimeUnit.SECONDS).close();
            java.util.concurrent.locks.Lock view = client.lock("x").asLock();
            view.lock();
            view.unlock();
        } catch (Exception error) {
            throw new AssertionError(error);
        } finally {
            MINE.remove();
        }
    }
}
