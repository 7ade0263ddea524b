import static java.nio.file.StandardOpenOption.READ;
import static java.nio.file.StandardOpenOption.WRITE;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;

/** The bench's courses, the same code for every contestant on the JVM; bench/src/subject/mod.rs has the protocol. */
final class Course {
    /** The operations that are measured: acquire and release, waiting as long as it takes. */
    interface Contestant {
        /** Gets the lock in this thread; what is answered lets it go, and stays for the answer. */
        Release acquire(String key) throws Exception;

        /** Gets the lock and lets it go, without a thread that waits. */
        CompletionStage<?> pair(String key);
    }

    /** See {@link Contestant#acquire}. */
    interface Release {
        void run() throws Exception;
    }

    private final Map<String, String> words = new HashMap<>();
    private final Contestant contestant;

    private Course(Contestant contestant, String[] words, int first) {
        this.contestant = contestant;
        for (String word : Arrays.copyOfRange(words, first, words.length)) {
            String[] pair = word.split("=", 2);
            this.words.put(pair[0], pair[1]);
        }
    }

    /** The value of {@code name=value} among the words; empty if it is not given. */
    static String word(String[] words, String name) {
        for (String word : words) {
            if (word.startsWith(name + "=")) {
                return word.substring(name.length() + 1);
            }
        }
        return "";
    }

    /** Runs the course that is the word at {@code at}, and prints its figures. */
    static void run(Contestant contestant, String[] words, int at) throws Exception {
        Course course = new Course(contestant, words, at + 1);
        System.out.println(switch (words[at]) {
            case "pair" -> course.pair();
            case "parallel" -> course.parallel();
            case "contend" -> course.contend();
            default -> throw new IllegalArgumentException("there is no course " + words[at]);
        });
        System.out.flush();
        // Whoever is still in flight is of interest to nobody.
        Runtime.getRuntime().halt(0);
    }

    private int number(String name) {
        return Integer.parseInt(words.get(name));
    }

    /** Tells that all is connected and warm, and waits for the start. */
    static void ready() throws IOException {
        System.out.println("ready");
        System.out.flush();
        if (System.in.read() < 0) {
            throw new IOException("nobody has said go");
        }
    }

    private String pair() throws Exception {
        String key = words.get("key");
        int pairs = number("pairs");
        // A tenth is enough elsewhere; here it is compiled meanwhile.
        for (int number = 0; number < pairs; number++) {
            contestant.acquire(key).run();
        }
        ready();
        double[] times = new double[pairs];
        double[] acquires = new double[pairs];
        for (int number = 0; number < pairs; number++) {
            long begin = System.nanoTime();
            Release release = contestant.acquire(key);
            acquires[number] = (System.nanoTime() - begin) / 1e3;
            release.run();
            times[number] = (System.nanoTime() - begin) / 1e3;
        }
        return String.format(java.util.Locale.ROOT,
            "{\"p50_us\": %.3f, \"p99_us\": %.3f, \"pairs\": %d, \"warm_pairs\": %d, \"acquire_p50_us\": %.3f}",
            at(times, 0.5), at(times, 0.99), pairs, pairs, at(acquires, 0.5));
    }

    private static double at(double[] times, double part) {
        Arrays.sort(times);
        return times[(int) ((times.length - 1) * part)];
    }

    private String parallel() throws Exception {
        AtomicLong pairs = new AtomicLong();
        for (int number = 0; number < number("keys"); number++) {
            again(words.get("key") + ":" + number, pairs);
        }
        Thread.sleep(number("milliseconds"));
        ready();
        long begin = System.nanoTime();
        long before = pairs.get();
        Thread.sleep(number("milliseconds"));
        double seconds = (System.nanoTime() - begin) / 1e9;
        return String.format(java.util.Locale.ROOT, "{\"pairs_per_s\": %.3f}", (pairs.get() - before) / seconds);
    }

    /** A thread for each task, and one key that all of them want, those of other processes too. */
    private String contend() throws Exception {
        String key = words.get("key");
        long[] acquired = new long[number("tasks")];
        Passages passages = new Passages();
        contestant.acquire(key + ":warm:" + words.get("first")).run();
        ready();
        long begin = System.nanoTime();
        // Open until the process ends: so long its users go on.
        FileChannel turn = FileChannel.open(Path.of(words.get("turn")), READ, WRITE);
        for (int number = 0; number < acquired.length; number++) {
            int task = number;
            new Thread(() -> {
                try {
                    take(key, turn, task, acquired, passages);
                } catch (Exception error) {
                    error.printStackTrace();
                    Runtime.getRuntime().halt(1);
                }
            }).start();
        }
        Thread.sleep(number("milliseconds"));
        double seconds = (System.nanoTime() - begin) / 1e9;
        double[] times = passages.all();
        return String.format(java.util.Locale.ROOT,
            "{\"acquired\": %s, \"handed\": %d, \"seconds\": %.3f, \"passage_p50_us\": %s}",
            Arrays.toString(acquired), times.length, seconds, times.length == 0 ? "null" : at(times, 0.5));
    }

    /** How long it took from the release of one task to the acquisition of another, in microseconds. */
    private static final class Passages {
        private final List<Double> times = new ArrayList<>();

        synchronized void add(double time) {
            times.add(time);
        }

        synchronized double[] all() {
            return times.stream().mapToDouble(Double::doubleValue).toArray();
        }
    }

    private void take(String key, FileChannel turn, int task, long[] acquired, Passages passages) throws Exception {
        ByteBuffer last = ByteBuffer.allocate(2 * Long.BYTES).order(ByteOrder.LITTLE_ENDIAN);
        long me = number("first") + task;
        long section = number("section_us") * 1_000L;
        while (true) {
            Release release = contestant.acquire(key);
            // Linux's monotonic clock, the same in every process.
            long won = System.nanoTime();
            acquired[task]++;
            turn.read(last.clear(), 0);
            if (last.getLong(0) != me) {
                passages.add(Math.max(0, won - last.getLong(Long.BYTES)) / 1e3);
            }
            if (section > 0) {
                LockSupport.parkNanos(section);
            }
            turn.write(last.clear().putLong(0, me).putLong(Long.BYTES, System.nanoTime()), 0);
            release.run();
        }
    }

    private void again(String key, AtomicLong pairs) {
        contestant.pair(key).whenComplete((done, error) -> {
            if (error != null) {
                error.printStackTrace();
                Runtime.getRuntime().halt(1);
            }
            pairs.incrementAndGet();
            again(key, pairs);
        });
    }
}
