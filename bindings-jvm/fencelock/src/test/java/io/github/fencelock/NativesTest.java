package io.github.fencelock;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** The crossing between Java and the core. */
final class NativesTest {
    @Test
    void aPanicIsAnExceptionWithTheCodeInternal() {
        InternalException noClient = assertThrows(InternalException.class, () -> Natives.isHeld(-1, 1));
        assertEquals(Code.INTERNAL, noClient.code());
        assertTrue(noClient.getMessage().contains("there is no client"), noClient::getMessage);
        byte[] nonsense = "nonsense".getBytes(StandardCharsets.UTF_8);
        assertThrows(InternalException.class, () -> Natives.connect(nonsense));
        assertThrows(InternalException.class, () -> Natives.submit(-1, nonsense));
        try (Client client = Fencelock.connect("memory:")) {
            assertTrue(client.lock("x").tryAcquire().isPresent(), "the host goes on");
        }
    }

    @Test
    void theUnknownIsRefusedByItsAnswer() {
        try (Client client = Fencelock.connect("memory:")) {
            Request<Object> request = Request.of(client, Map.of("op", "juggle"), answer -> answer);
            assertThrows(InvalidArgumentException.class, request::get);
        }
    }

    private static Object there(Object value) {
        Map<String, Object> shown = new LinkedHashMap<>();
        shown.put("value", value);
        return Shape.map(Parcel.read(Parcel.write(shown))).get("value");
    }

    @Test
    void valuesCrossAsTheyAre() {
        List<Object> list = new ArrayList<>(Arrays.asList(null, true, false, 0L, -1L, Long.MIN_VALUE, 1.5, "", "ä🔒\0"));
        list.add(new ArrayList<>(list));
        list.add(new LinkedHashMap<>(Map.of("", Map.of("é", List.of()))));
        assertEquals(list, there(list));
        BigInteger large = BigInteger.ONE.shiftLeft(64).subtract(BigInteger.ONE);
        assertEquals(large, there(large));
        assertEquals(1_500L, there(Duration.ofMillis(1_500)));
        assertEquals(1e-3, there(Duration.ofNanos(1_000)));
        assertEquals("?", there("\ud800"), "half a character is none");
        for (Object odd : new Object[] {new Object(), Double.NaN, Double.POSITIVE_INFINITY}) {
            assertThrows(InvalidArgumentException.class, () -> Parcel.write(odd));
        }
    }

    @Test
    void valuesCrossToTheCoreAndBack() {
        try (Client client = Fencelock.connect("memory:parcel")) {
            Object value = Map.of("all", Arrays.asList(null, true, 1L, -2.5, "ä🔒", List.of(Map.of())), "n",
                BigInteger.ONE.shiftLeft(63));
            client.version("x").update(seen -> value);
            assertEquals(value, client.version("x").read().orElseThrow().value());
            Object deep = 1L;
            for (int depth = 0; depth < 130; depth++) {
                deep = List.of(deep);
            }
            Object deepest = deep;
            assertThrows(InvalidArgumentException.class, () -> client.version("x").update(seen -> deepest));
        }
    }

    @Test
    void jsonOnTheStoreIsRead() {
        assertEquals(Map.of("a", List.of(1L, "ü")), Shape.info("{\"a\":[1,\"ü\"]}"));
        assertEquals(Map.of(), Shape.info("nothing of the kind"));
        assertArrayEquals(new byte[] {'n'}, Natives.parse(new byte[0]));
    }

    @Test
    void aPlatformWithoutALibraryIsNamed() {
        assertEquals("macos-aarch64", NativeLibrary.platform("Mac OS X", "aarch64"));
        assertEquals("windows-x86_64", NativeLibrary.platform("Windows 11", "amd64"));
        assertEquals("linux-x86_64", NativeLibrary.platform("Linux", "amd64"));
        UnsupportedException error =
            assertThrows(UnsupportedException.class, () -> NativeLibrary.loadForAnyLibc("linux-riscv64"));
        String named = "no library for linux-riscv64, but for linux-x86_64;";
        assertTrue(error.getMessage().contains(named), error::getMessage);
    }

    @Test
    void aGrantThatReachesNobodyIsTakenBack() {
        try (Client client = Fencelock.connect("memory:declined")) {
            Guard guard = client.lock("x").tryAcquire().orElseThrow();
            guard.decline();
            guard.close();
            Wait.atRest(client, "x");
        }
    }
}
