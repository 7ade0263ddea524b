package io.github.fencelock;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

/** A library that several applications share keeps none of them. */
final class ClassLoaderTest {
    @Test
    void anApplicationThatIsGoneIsCollected() throws Exception {
        Process process = Witness.program(Host.class.getName()).redirectErrorStream(true).start();
        String said = new String(process.getInputStream().readAllBytes());
        // A newer Java warns of native code before.
        assertTrue(said.strip().endsWith("gone"), said);
        assertEquals(0, process.waitFor());
    }
}
