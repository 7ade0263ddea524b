package io.github.fencelock;

import static org.junit.jupiter.api.Assertions.fail;

import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;

/**
 * What the process has of everything: resident memory, of which the heap is all there from the start, and what is alive in the
 * heap, both in kB; descriptors, threads.
 */
public record Weight(long resident, long heap, long descriptors, long threads) {
    private static final int ROUNDS = 4;
    private static final long GROWTH = 4_000;

    /** Something that shall leave nothing. */
    public interface Work {
        /** Does it. */
        void run() throws Exception;
    }

    /** Now. */
    public static Weight now() throws IOException {
        System.gc();
        long pages = Long.parseLong(Files.readString(Path.of("/proc/self/statm")).split(" ")[1]);
        long heap = ManagementFactory.getMemoryMXBean().getHeapMemoryUsage().getUsed();
        try (Stream<Path> descriptors = Files.list(Path.of("/proc/self/fd"));
             Stream<Path> threads = Files.list(Path.of("/proc/self/task"))) {
            return new Weight(pages * 4, heap / 1_000, descriptors.count(), threads.count());
        }
    }

    /** Does {@code work} in rounds until one has left nothing: a leak grows in each, what a JVM keeps for itself does not. */
    public static void staysFlat(Work work) throws Exception {
        List<Weight> seen = new ArrayList<>(List.of(now()));
        for (int round = 1; round <= ROUNDS; round++) {
            work.run();
            seen.add(now());
            if (seen.get(round).isAsLightAs(seen.get(round - 1))) {
                System.out.println("flat: " + seen);
                return;
            }
        }
        fail("it grows: " + seen);
    }

    private boolean isAsLightAs(Weight before) {
        return resident - before.resident < GROWTH && heap - before.heap < GROWTH
            && descriptors <= before.descriptors && threads <= before.threads + 2;
    }
}
