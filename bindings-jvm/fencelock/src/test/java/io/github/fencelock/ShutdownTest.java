package io.github.fencelock;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** While a JVM ends, hooks run and others work on: nobody else is granted what they work under. */
final class ShutdownTest {
    /** The output of a {@link Worker}, the time when its hold was granted to us, and the time when it had ended. */
    private record Seen(List<String> said, long worked, long left, long end, int code) {
        /** The last moment of which this was said. */
        long last(String what) {
            return said.stream().filter(line -> line.startsWith(what + " "))
                .mapToLong(line -> Long.parseLong(line.substring(what.length() + 1))).max().orElse(0);
        }
    }

    private static Seen see(String url, String how, String end) throws Exception {
        String name = Stores.name();
        Process process = Witness.program(Worker.class.getName(), url, name, how, end).redirectErrorStream(true).start();
        List<String> said = new ArrayList<>();
        try (Client client = Fencelock.connect(url);
             BufferedReader out = new BufferedReader(new InputStreamReader(process.getInputStream()))) {
            for (String line = out.readLine(); !line.equals("begun"); line = out.readLine()) {
                said.add(line);
            }
            if (how.equals("first")) {
                // Nothing is held before the first hook runs.
                process.toHandle().destroy();
                do {
                    said.add(out.readLine());
                } while (!said.get(said.size() - 1).startsWith("worked"));
            }
            List<CompletableFuture<Long>> granted = List.of(Witness.granted(client, name), Witness.granted(client, name + "/left"));
            if (end.equals("terminate")) {
                process.toHandle().destroy();
            }
            out.lines().forEach(said::add);
            assertTrue(process.waitFor(Wait.PATIENCE.toSeconds(), TimeUnit.SECONDS), "it hangs");
            long ended = System.nanoTime();
            long worked = granted.get(0).get(Wait.PATIENCE.toSeconds(), TimeUnit.SECONDS);
            long left = granted.get(1).get(Wait.PATIENCE.toSeconds(), TimeUnit.SECONDS);
            return new Seen(said, worked, left, ended, process.exitValue());
        } finally {
            process.destroyForcibly();
        }
    }

    private static String store(String kind) {
        return kind.equals("redis") ? Stores.redis().url() : Stores.sqlite();
    }

    @ParameterizedTest
    @CsvSource({
        "redis, join, terminate", "sqlite, join, terminate", "redis, join, exit", "sqlite, join, return",
        "redis, pool, terminate", "redis, first, terminate"})
    void aHookThatWaitsForWorkSeesItDoneUnderItsLock(String store, String how, String end) throws Exception {
        Seen seen = see(store(store), how, end);
        assertTrue(seen.last("done") > 0, () -> "it was not done: " + seen);
        assertTrue(seen.worked >= seen.last("done"), () -> "granted while somebody worked under it: " + seen);
        assertTrue(seen.left >= seen.last("ended"), () -> "granted before the last hook had ended: " + seen);
        freedInTime(seen);
        assertEquals(end.equals("terminate") ? 143 : 0, seen.code);
    }

    @ParameterizedTest
    @CsvSource({"redis, alone, terminate", "sqlite, alone, exit", "redis, halt, terminate"})
    void whatNobodyWaitsForIsNotOvertakenEither(String store, String how, String end) throws Exception {
        Seen seen = see(store(store), how, end);
        assertEquals(0, seen.last("done"), () -> "it was waited for: " + seen);
        assertFalse(seen.said.stream().anyMatch(line -> line.contains("Exception")), seen::toString);
        assertTrue(seen.worked >= seen.last("worked"), () -> "granted while somebody worked under it: " + seen);
        assertTrue(seen.left >= seen.last("ended"), () -> "granted before the last hook had ended: " + seen);
        freedInTime(seen);
    }

    @ParameterizedTest
    @CsvSource({"redis", "sqlite"})
    void aClientThatAHookClosesFreesAtOnce(String store) throws Exception {
        Seen seen = see(store(store), "close", "terminate");
        Duration left = Duration.ofNanos(seen.left - seen.last("ended"));
        assertTrue(left.compareTo(Witness.PARTING) <= 0, () -> left + " after it was closed: " + seen);
    }

    /** Nothing is left to its lease, which would last longer. How long a JVM takes from its last hook to its end is not ours. */
    private static void freedInTime(Seen seen) {
        Duration left = Duration.ofNanos(seen.left - seen.end);
        assertTrue(left.compareTo(Witness.PARTING) <= 0, () -> left + " after the process had ended: " + seen);
    }
}
