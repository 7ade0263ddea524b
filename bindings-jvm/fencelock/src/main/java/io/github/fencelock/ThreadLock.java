package io.github.fencelock;

import java.time.Duration;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;

/** See {@link Lock#asLock}. */
final class ThreadLock implements java.util.concurrent.locks.Lock {
    private final Lock lock;

    ThreadLock(Lock lock) {
        this.lock = lock;
    }

    /** The guards that one thread holds of one client, and the scope in which it enters mutexes again. */
    static final class Holdings {
        private final Scope scope;
        private final Map<Map<String, Object>, Deque<Guard>> guards = new HashMap<>();

        Holdings(Client client) {
            scope = new Scope(client);
        }
    }

    /** The lock as this thread enters it. */
    private Lock entered() {
        return lock.isMutex() ? lock.in(lock.client.holdings().get().scope) : lock;
    }

    private void hold(Guard guard) {
        Holdings mine = lock.client.holdings().get();
        mine.guards.computeIfAbsent(lock.identity(), lock -> new ArrayDeque<>()).push(guard);
    }

    /** A thread that holds nothing leaves nothing. */
    private void forget() {
        ThreadLocal<Holdings> holdings = lock.client.holdings();
        Holdings mine = holdings.get();
        if (mine.guards.isEmpty()) {
            mine.scope.close();
            holdings.remove();
        }
    }

    private void acquired(Optional<Guard> guard) {
        guard.ifPresent(this::hold);
        forget();
    }

    @Override
    public void lock() {
        Guard guard = null;
        try {
            guard = entered().acquiring().get();
        } finally {
            acquired(Optional.ofNullable(guard));
        }
    }

    @Override
    public void lockInterruptibly() throws InterruptedException {
        Guard guard = null;
        try {
            guard = entered().acquire();
        } finally {
            acquired(Optional.ofNullable(guard));
        }
    }

    @Override
    public boolean tryLock() {
        Optional<Guard> guard = Optional.empty();
        try {
            guard = entered().tryAcquire();
        } finally {
            acquired(guard);
        }
        return guard.isPresent();
    }

    @Override
    public boolean tryLock(long time, TimeUnit unit) throws InterruptedException {
        Guard guard = null;
        try {
            guard = entered().acquire(Duration.ofNanos(Math.max(0, unit.toNanos(time))));
        } catch (LockTimeoutException over) {
            return false;
        } finally {
            acquired(Optional.ofNullable(guard));
        }
        return true;
    }

    @Override
    public void unlock() {
        Holdings mine = lock.client.holdings().get();
        Deque<Guard> stack = mine.guards.get(lock.identity());
        if (stack == null) {
            forget();
            throw new IllegalMonitorStateException("this thread does not hold `" + lock.name() + "`");
        }
        Guard guard = stack.pop();
        if (stack.isEmpty()) {
            mine.guards.remove(lock.identity());
        }
        try {
            guard.close();
        } finally {
            forget();
        }
    }

    @Override
    public Condition newCondition() {
        throw new UnsupportedOperationException("a lock between processes has no conditions");
    }

    @Override
    public String toString() {
        return lock.toString();
    }
}
