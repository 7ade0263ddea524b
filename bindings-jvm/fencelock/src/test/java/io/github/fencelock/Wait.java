package io.github.fencelock;

import static org.junit.jupiter.api.Assertions.fail;

import java.time.Duration;
import java.util.function.BooleanSupplier;
import java.util.function.Supplier;

/** Waits for what happens elsewhere, not longer than a machine with other things to do may take. */
final class Wait {
    static final Duration PATIENCE = Duration.ofSeconds(20);

    private Wait() {}

    static void until(String what, BooleanSupplier wanted) {
        until(() -> what, wanted);
    }

    static void until(Supplier<String> what, BooleanSupplier wanted) {
        long end = System.nanoTime() + PATIENCE.toNanos();
        while (!wanted.getAsBoolean()) {
            if (System.nanoTime() > end) {
                fail("not within " + PATIENCE + ": " + what.get());
            }
            Thread.onSpinWait();
            Thread.yield();
        }
    }

    /** Nothing runs, nothing is held, nobody waits. */
    static void atRest(Client client, String... locks) {
        until(() -> "the client is at rest: " + client.stats(), () -> client.stats().fields.values().stream().allMatch(count -> count.equals(0L)));
        for (String name : locks) {
            until("`" + name + "` is free", () -> {
                LockState state = client.lock(name).inspect();
                return state.holders().isEmpty() && state.waiters().isEmpty();
            });
        }
    }

    /** A tenth of what is shown in full. */
    static int tenth(int full) {
        return System.getenv("FENCELOCK_FULL") == null ? full / 10 : full;
    }
}
