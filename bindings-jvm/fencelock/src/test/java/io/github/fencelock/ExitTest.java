package io.github.fencelock;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Processes that end while they hold locks: what is held is released within a second, else left to its lease. */
final class ExitTest {
    private static ProcessBuilder program(String... words) {
        List<String> command = new ArrayList<>();
        command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
        command.addAll(List.of("-Xmx64m", "-cp", System.getProperty("java.class.path")));
        command.addAll(List.of(words));
        return new ProcessBuilder(command);
    }

    private static Process start(String url, String name, String how) throws IOException {
        Process process = program(Holder.class.getName(), url, name, how)
            .redirectError(ProcessBuilder.Redirect.DISCARD).start();
        BufferedReader out = new BufferedReader(new InputStreamReader(process.getInputStream()));
        assertTrue(out.readLine().startsWith("token "));
        return process;
    }

    private static void ended(Process process, Duration within) throws InterruptedException {
        assertTrue(process.waitFor(within.toMillis() + Wait.PATIENCE.toMillis(), TimeUnit.MILLISECONDS), "it hangs");
    }

    @ParameterizedTest
    @CsvSource({"return,0", "exit,3", "stuck,3", "throw,1"})
    void whatIsHeldAtTheEndIsReleased(String how, int code) throws Exception {
        String name = Stores.name();
        try (Client witness = Fencelock.connect(Stores.redis().url())) {
            Process process = start(Stores.redis().url(), name, how);
            ended(process, Duration.ofSeconds(1));
            assertEquals(code, process.exitValue());
            LockState state = witness.lock(name).inspect();
            assertTrue(state.holders().isEmpty() && state.waiters().isEmpty(), state::toString);
        }
    }

    @Test
    void withoutALibraryConnectingSaysWhy() throws Exception {
        Process process = program("-Dfencelock.library=/no/such/library", Holder.class.getName(), "memory:", "x", "exit")
            .redirectErrorStream(true).start();
        String said = new String(process.getInputStream().readAllBytes());
        ended(process, Duration.ofSeconds(1));
        assertTrue(said.contains("io.github.fencelock.UnsupportedException: the system refuses to load"), said);
        assertFalse(said.contains("ExceptionInInitializerError"), said);
    }

    @Test
    void aTerminatedProcessReleasesToo() throws Exception {
        String name = Stores.name();
        try (Client witness = Fencelock.connect(Stores.redis().url())) {
            Process process = start(Stores.redis().url(), name, "wait");
            assertFalse(witness.lock(name).inspect().holders().isEmpty());
            process.destroy();
            ended(process, Duration.ofSeconds(1));
            assertTrue(witness.lock(name).inspect().holders().isEmpty());
        }
    }

    @Test
    void aHaltedProcessLeavesItToTheLease() throws Exception {
        String name = Stores.name();
        try (Client witness = Fencelock.connect(Stores.redis().url())) {
            Process process = start(Stores.redis().url() + "?ttl=1s", name, "halt");
            ended(process, Duration.ofSeconds(1));
            assertEquals(4, process.exitValue());
            witness.lock(name).acquire(Duration.ofSeconds(10)).close();
        }
    }

    @Test
    void aStoreThatStandsStillDoesNotHoldTheProcess() throws Exception {
        try (RedisServer server = new RedisServer()) {
            Process process = start(server.url(), "x", "wait");
            server.standStill();
            long begin = System.nanoTime();
            process.destroy();
            ended(process, Duration.ofSeconds(1));
            Duration took = Duration.ofNanos(System.nanoTime() - begin);
            System.out.println("the store stands still, the process ended after " + took);
            // A second for the store, two for a JVM to end on a busy machine.
            assertTrue(took.compareTo(Duration.ofSeconds(3)) < 0, took::toString);
        }
    }
}
