package io.github.fencelock;

import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** Locks for code that knows java.util.concurrent. */
final class ThreadLockTest {
    private final Client client = Fencelock.connect(Stores.redis().url());
    private final String name = Stores.name();

    @AfterEach
    void close() {
        Wait.atRest(client, name);
        client.close();
    }

    private static <T> T elsewhere(Callable<T> work) throws Exception {
        FutureTask<T> task = new FutureTask<>(work);
        new Thread(task).start();
        try {
            return task.get(20, TimeUnit.SECONDS);
        } catch (ExecutionException error) {
            throw error.getCause() instanceof Exception cause ? cause : error;
        }
    }

    private java.util.concurrent.locks.Lock view() {
        return client.lock(name).asLock();
    }

    @Test
    void aThreadEntersAgainByAnyView() throws Exception {
        view().lock();
        assertTrue(view().tryLock());
        view().lockInterruptibly();
        assertFalse(elsewhere(() -> view().tryLock()));
        view().unlock();
        view().unlock();
        assertFalse(elsewhere(() -> view().tryLock(20, TimeUnit.MILLISECONDS)));
        view().unlock();
        elsewhere(() -> {
            view().lock();
            view().unlock();
            return null;
        });
        assertThrows(IllegalMonitorStateException.class, () -> view().unlock());
    }

    @Test
    void onlyTheHoldingThreadUnlocks() throws Exception {
        view().lock();
        assertThrows(IllegalMonitorStateException.class, () -> elsewhere(() -> {
            view().unlock();
            return null;
        }));
        view().unlock();
        assertThrows(UnsupportedOperationException.class, () -> view().newCondition());
        assertTrue(view().tryLock(Long.MAX_VALUE, TimeUnit.DAYS));
        view().unlock();
    }

    @Test
    void aWaitCanBeInterruptedWhereItSaysSo() throws Exception {
        view().lock();
        Thread waits = new Thread(() -> assertThrows(InterruptedException.class, () -> view().lockInterruptibly()));
        waits.start();
        Wait.until("it waits", () -> client.lock(name).inspect().waiters().size() + client.stats().running() > 0);
        waits.interrupt();
        waits.join(20_000);
        assertFalse(waits.isAlive());

        boolean[] kept = {false};
        Thread stubborn = new Thread(() -> {
            view().lock();
            kept[0] = Thread.currentThread().isInterrupted();
            view().unlock();
        });
        stubborn.start();
        stubborn.interrupt();
        view().unlock();
        stubborn.join(20_000);
        assertTrue(kept[0], "the interrupt is kept for later");
    }

    @Test
    void aLossIsRaisedByUnlock() {
        java.util.concurrent.locks.Lock brief = client.lock(name).ttl(Duration.ofSeconds(1)).renew(false).asLock();
        brief.lock();
        Wait.until("the lease is over", () -> client.lock(name).inspect().holders().isEmpty());
        assertThrows(LockLostException.class, brief::unlock);
        brief.lock();
        brief.unlock();
    }

    @Test
    void readersHaveAViewToo() throws Exception {
        java.util.concurrent.locks.Lock reads = client.readLock(name).asLock();
        reads.lock();
        elsewhere(() -> {
            reads.lock();
            reads.unlock();
            return null;
        });
        assertFalse(elsewhere(() -> client.writeLock(name).asLock().tryLock()));
        reads.unlock();
    }
}
