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
 * The resources of the process: resident memory, of which the heap is all there from the start, so that it grows by
 * what is native, and what is alive in the heap, both in bytes; descriptors; threads of the system.
 */
public record Weight(long resident, long heap, long descriptors, long threads) {
    private static final int ROUNDS = 8;
    /** So many in a row leave nothing: in one or two a leak may hide behind what others give back. */
    private static final int ENOUGH = 3;
    /** The bytes that may be left of a pair in full, where what an allocator keeps and a page rounds to is divided by 100,000. */
    private static final long SLACK = 32;
    /** So many threads may come in all rounds together, as they do where there is more to do than cores; a leak is one a round. */
    private static final long MORE_THREADS = 2;

    /** Something that shall leave nothing, so many times in a round. */
    public interface Work {
        /** Does it. */
        void run(int times) throws Exception;
    }

    /** Now. */
    public static Weight now() throws IOException {
        System.gc();
        long pages = Long.parseLong(Files.readString(Path.of("/proc/self/statm")).split(" ")[1]);
        long heap = ManagementFactory.getMemoryMXBean().getHeapMemoryUsage().getUsed();
        try (Stream<Path> descriptors = Files.list(Path.of("/proc/self/fd"));
             Stream<Path> threads = Files.list(Path.of("/proc/self/task"))) {
            return new Weight(pages * 4_096, heap, descriptors.count(), threads.count());
        }
    }

    /**
     * Does {@code work} 100,000 times a round, a tenth in a hurry, until three rounds in a row have each left less than 32 bytes
     * each time, or 320. A leak grows in each round, what a JVM keeps for itself does not.
     */
    public static void staysFlat(String what, Work work) throws Exception {
        int times = Wait.tenth(100_000);
        long most = SLACK * 100_000 / times;
        work.run(times / 4);
        List<Weight> seen = new ArrayList<>(List.of(now()));
        for (int round = 1, flat = 0; round <= ROUNDS; round++) {
            Weight last = seen.get(round - 1);
            // What works beside comes and goes by one; a leak is more than ever was.
            long descriptors = seen.stream().mapToLong(Weight::descriptors).max().orElseThrow();
            work.run(times);
            seen.add(now());
            Weight grown = seen.get(round).since(new Weight(last.resident, last.heap, descriptors, seen.get(0).threads));
            boolean light = grown.resident < most * times && grown.heap < most * times && grown.descriptors <= 0
                && grown.threads <= MORE_THREADS;
            flat = light ? flat + 1 : 0;
            if (flat == ENOUGH) {
                System.out.printf("%s: %d left %.1f bytes each resident and %.1f in the heap, %s after %d rounds%n", what, times,
                    1.0 * grown.resident / times, 1.0 * grown.heap / times, seen.get(round), round);
                return;
            }
        }
        fail(what + " grows by more than " + most + " bytes each time: " + seen);
    }

    private Weight since(Weight before) {
        return new Weight(
            resident - before.resident, heap - before.heap, descriptors - before.descriptors, threads - before.threads);
    }
}
