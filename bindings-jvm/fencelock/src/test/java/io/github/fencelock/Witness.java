package io.github.fencelock;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;

/** A process that holds locks and ends, and somebody who waits for all that it holds. */
public final class Witness implements AutoCloseable {
    /** How long the end of a process may hold what it holds. */
    static final Duration PARTING = Duration.ofSeconds(1);

    private final Client client;
    private final List<CompletableFuture<? extends Guard>> waits = new ArrayList<>();
    private final Process process;
    private final BufferedReader out;

    /** Has the program hold {@code clients * each} locks with this prefix, and waits for each of them. */
    public Witness(String program, String url, String prefix, int clients, int each, String how) throws IOException {
        process = program(program, url, prefix, "" + clients, "" + each, how)
            .redirectError(ProcessBuilder.Redirect.DISCARD).start();
        out = new BufferedReader(new InputStreamReader(process.getInputStream()));
        assertEquals("held " + clients * each, out.readLine());
        client = Fencelock.connect(url);
        for (int number = 0; number < clients * each; number++) {
            waits.add(asking(client, prefix, number));
        }
    }

    /** A program of these tests, in a JVM of its own. */
    static ProcessBuilder program(String... words) {
        List<String> command = new ArrayList<>();
        command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
        command.addAll(List.of("-Xmx64m", "-cp", System.getProperty("java.class.path")));
        command.addAll(List.of(words));
        return new ProcessBuilder(command);
    }

    /** Acquires a hold under this number, one kind after the other: nobody else may hold it meanwhile. */
    static CompletableFuture<? extends Guard> asking(Client client, String prefix, int number) {
        return switch (number % 4) {
            case 1 -> client.writeLock(prefix + number).acquireAsync();
            case 2 -> client.semaphore(prefix + number, 1).acquireAsync();
            case 3 -> client.election(prefix + number).campaignAsync();
            default -> client.lock(prefix + number).acquireAsync();
        };
    }

    /** When the lock was granted to us, who give it back. */
    static CompletableFuture<Long> granted(Client client, String name) {
        return client.lock(name).acquireAsync().thenApply(guard -> {
            long now = System.nanoTime();
            guard.releaseAsync();
            return now;
        });
    }

    /** Tells the process to end; what it says until then is still heard. */
    public void terminate() {
        assertTrue(process.toHandle().destroy());
    }

    /** All is free within {@link #PARTING} of when the end of the process has begun, and the process ends with this code. */
    public void sees(String what, int code) throws Exception {
        sees(what, code, PARTING);
    }

    /** How long the process has taken to end. */
    Duration sees(String what, int code, Duration within) throws Exception {
        long parting = parting();
        CompletableFuture.allOf(waits.toArray(CompletableFuture[]::new)).get(Wait.PATIENCE.toSeconds(), TimeUnit.SECONDS);
        Duration freed = Duration.ofNanos(System.nanoTime() - parting);
        Duration ended = ended(parting, code);
        System.out.printf("%s: free after %d ms, ended after %d ms%n", what, freed.toMillis(), ended.toMillis());
        assertTrue(freed.compareTo(within) <= 0, () -> what + ": it was free after " + freed);
        return ended;
    }

    /** How long a process takes to end that has nothing to do with any of this, as busy as the machine is. */
    static Duration idleEnds() throws Exception {
        Process process = program(Holder.class.getName(), "idle").start();
        BufferedReader out = new BufferedReader(new InputStreamReader(process.getInputStream()));
        assertEquals("waits", out.readLine());
        assertTrue(process.toHandle().destroy());
        return ended(process, parting(out), 143);
    }

    /** When the end has begun. */
    long parting() throws IOException {
        return parting(out);
    }

    private static long parting(BufferedReader out) throws IOException {
        String said = out.readLine();
        assertTrue(said != null && said.startsWith("parting "), said);
        return Long.parseLong(said.substring("parting ".length()));
    }

    /** How long the process has taken to end, with this code. */
    Duration ended(long parting, int code) throws InterruptedException {
        return ended(process, parting, code);
    }

    private static Duration ended(Process process, long parting, int code) throws InterruptedException {
        assertTrue(process.waitFor(Wait.PATIENCE.toSeconds(), TimeUnit.SECONDS), "it hangs");
        Duration ended = Duration.ofNanos(System.nanoTime() - parting);
        assertEquals(code, process.exitValue());
        return ended;
    }

    @Override
    public void close() {
        process.destroyForcibly();
        waits.forEach(wait -> wait.thenAccept(Guard::close));
        client.close();
    }
}
