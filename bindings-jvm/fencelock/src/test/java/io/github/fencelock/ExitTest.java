package io.github.fencelock;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/** Processes that end while they hold locks: what is held is released within a second, else left to its lease. */
final class ExitTest {
    private static Stream<Arguments> ends() {
        Map<String, Integer> ways = Map.of("return", 0, "exit", 3, "stuck", 3, "late", 3, "throw", 1, "wait", 143);
        return ways.entrySet().stream().flatMap(way -> Stores.shared().flatMap(url -> Stream.of(
            Arguments.of(url, 1, 1, way.getKey(), way.getValue()), Arguments.of(url, 3, 40, way.getKey(), way.getValue()))));
    }

    @ParameterizedTest
    @MethodSource("ends")
    void whatIsHeldAtTheEndIsReleased(String url, int clients, int each, String how, int code) throws Exception {
        try (Witness witness = new Witness(Holder.class.getName(), url, Stores.name() + "/", clients, each, how)) {
            if (how.equals("wait")) {
                witness.terminate();
            }
            witness.sees(how + " with " + clients * each + " on " + url.split(":")[0], code);
        }
    }

    @ParameterizedTest
    @MethodSource("io.github.fencelock.Stores#shared")
    void aWaitEndsWithItsProcess(String url) throws Exception {
        Duration took = Witness.PARTING;
        Duration idle = Witness.PARTING;
        // Of three, the quickest: what a machine has else to do makes none of them quicker than it is.
        for (int time = 0; time < 3; time++) {
            try (Witness witness = new Witness(Holder.class.getName(), url, Stores.name() + "/", 1, 1, "queue")) {
                witness.terminate();
                took = least(took, witness.sees("wait for a lock on " + url.split(":")[0], 143, Witness.PARTING));
                idle = least(idle, Witness.idleEnds());
            }
        }
        assertTrue(took.minus(idle).compareTo(Duration.ofMillis(200)) <= 0, took + ", an idle one " + idle);
    }

    private static Duration least(Duration one, Duration other) {
        return one.compareTo(other) <= 0 ? one : other;
    }

    @Test
    void withoutALibraryConnectingSaysWhy() throws Exception {
        String library = "-Dfencelock.library=/no/such/library";
        Process process = Witness.program(library, Holder.class.getName(), "memory:", "x", "1", "1", "exit")
            .redirectErrorStream(true).start();
        String said = new String(process.getInputStream().readAllBytes());
        assertEquals(1, process.waitFor(), said);
        assertTrue(said.contains("io.github.fencelock.UnsupportedException: the system refuses to load"), said);
        assertFalse(said.contains("ExceptionInInitializerError"), said);
    }

    @Test
    void aHaltedProcessLeavesItToTheLease() throws Exception {
        String url = Stores.redis().url() + "?ttl=1s";
        try (Witness witness = new Witness(Holder.class.getName(), url, Stores.name() + "/", 1, 1, "halt")) {
            witness.sees("halt with a lease of a second", 4, Duration.ofSeconds(2));
        }
    }

    @Test
    void aStoreThatStandsStillDoesNotHoldTheProcess() throws Exception {
        try (RedisServer server = new RedisServer();
             Witness witness = new Witness(Holder.class.getName(), server.url(), "x/", 3, 40, "wait")) {
            server.standStill();
            witness.terminate();
            Duration took = witness.ended(witness.parting(), 143);
            System.out.println("the store stands still, the process ended after " + took);
            // A second for the store, two for a JVM to end on a busy machine.
            assertTrue(took.compareTo(Duration.ofSeconds(3)) < 0, took::toString);
        }
    }
}
