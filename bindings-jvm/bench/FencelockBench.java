import io.github.fencelock.Client;
import io.github.fencelock.Fencelock;
import io.github.fencelock.Guard;
import java.util.Arrays;
import java.util.Locale;
import java.util.concurrent.CompletionStage;

/** The packages for Java and for Kotlin on the bench's courses, which stand in peers/java/Course.java. */
public final class FencelockBench {
    private static final int CALLS = 200_000;

    private record Threads(Client client) implements Course.Contestant {
        @Override
        public Course.Release acquire(String key) throws InterruptedException {
            return client.lock(key).acquire()::close;
        }

        @Override
        public CompletionStage<?> pair(String key) {
            return client.lock(key).acquireAsync().thenCompose(Guard::releaseAsync);
        }
    }

    private record Coroutines(KotlinPairs pairs) implements Course.Contestant {
        @Override
        public Course.Release acquire(String key) {
            var guard = pairs.acquire(key);
            return () -> pairs.release(guard);
        }

        @Override
        public CompletionStage<?> pair(String key) {
            return pairs.pair(key);
        }
    }

    /** Measures the cost of a call into the core that only looks at a guard: the median of eleven rounds. */
    private static void crossing(Client client) throws Exception {
        try (Guard guard = client.lock("bench:crossing").acquire()) {
            double[] rounds = new double[11];
            Course.ready();
            for (int round = 0; round < rounds.length; round++) {
                long begin = System.nanoTime();
                for (int number = 0; number < CALLS; number++) {
                    if (!guard.isHeld()) {
                        throw new IllegalStateException("it is held");
                    }
                }
                rounds[round] = (System.nanoTime() - begin) / 1e3 / CALLS;
            }
            Arrays.sort(rounds);
            System.out.printf(Locale.ROOT, "{\"crossing_us\": %.4f}%n", rounds[rounds.length / 2]);
        }
        client.close();
    }

    /** Runs the course of the second word in the language of the first. */
    public static void main(String[] words) throws Exception {
        String url = Course.word(words, "url");
        if (words[1].equals("crossing")) {
            crossing(Fencelock.connect(url));
            return;
        }
        boolean kotlin = words[0].equals("kotlin");
        Course.run(kotlin ? new Coroutines(new KotlinPairs(url)) : new Threads(Fencelock.connect(url)), words, 1);
    }
}
