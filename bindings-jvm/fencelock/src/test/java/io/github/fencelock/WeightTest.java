package io.github.fencelock;

import static org.junit.jupiter.api.Assertions.assertDoesNotThrow;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.opentest4j.AssertionFailedError;

/** The scales see little: 64 bytes each time in full, 640 at a tenth; files; threads. */
@Tag("full")
final class WeightTest {
    private static final int LITTLE = 64 * 100_000;
    /** Tests before this one have left connections and threads that go meanwhile; a leak makes more in each round. */
    private static final int MORE_THAN_OTHERS_CLOSE = 50;
    /** Of threads it is no more than a few. */
    private static final int THREADS = 3;

    private static void isSeen(Weight.Work work) {
        assertThrows(AssertionFailedError.class, () -> Weight.staysFlat("a leak", work));
    }

    @Test
    void whatLeaksInTheHeapIsSeen() {
        List<byte[]> leak = new ArrayList<>();
        isSeen(times -> leak.add(new byte[LITTLE]));
    }

    @Test
    void whatLeaksOutsideIsSeen() {
        List<ByteBuffer> leak = new ArrayList<>();
        isSeen(times -> leak.add(ByteBuffer.allocateDirect(LITTLE)));
    }

    @Test
    void aFileThatStaysOpenIsSeen() throws Exception {
        List<InputStream> leak = new ArrayList<>();
        isSeen(times -> {
            for (int number = 0; number < MORE_THAN_OTHERS_CLOSE; number++) {
                leak.add(Files.newInputStream(Path.of("/proc/self/statm")));
            }
        });
        for (InputStream file : leak) {
            file.close();
        }
    }

    @Test
    void aThreadThatStaysIsSeen() throws Exception {
        CountDownLatch end = new CountDownLatch(1);
        List<Thread> leak = new ArrayList<>();
        isSeen(times -> {
            for (int number = 0; number < THREADS; number++) {
                Thread thread = new Thread(() -> assertDoesNotThrow(() -> end.await()));
                leak.add(thread);
                thread.start();
            }
        });
        end.countDown();
        // What they take would be given back while the next test looks.
        for (Thread thread : leak) {
            thread.join();
        }
    }
}
