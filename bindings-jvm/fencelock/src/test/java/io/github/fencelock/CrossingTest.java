package io.github.fencelock;

import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** The cost of a call into the core: well under a microsecond. */
@Tag("full")
final class CrossingTest {
    private static final int CALLS = 200_000;

    private static double microseconds(Runnable call) {
        double best = Double.MAX_VALUE;
        for (int round = 0; round < 10; round++) {
            long begin = System.nanoTime();
            for (int number = 0; number < CALLS; number++) {
                call.run();
            }
            best = Math.min(best, (System.nanoTime() - begin) / 1e3 / CALLS);
        }
        return best;
    }

    @Test
    void anEmptyCrossingIsCheap() throws Exception {
        try (Client client = Fencelock.connect("memory:crossing"); Guard guard = client.lock("x").acquire()) {
            double empty = microseconds(() -> Natives.abort(0));
            double held = microseconds(guard::isHeld);
            double scope = microseconds(() -> new Scope(client).close());
            System.out.printf("empty %.3f µs, isHeld %.3f µs, a scope opened and closed %.3f µs%n", empty, held, scope);
            assertTrue(empty < 1, () -> "an empty crossing took " + empty + " µs");
        }
    }
}
