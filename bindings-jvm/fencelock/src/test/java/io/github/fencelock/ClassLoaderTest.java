package io.github.fencelock;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.api.Test;

/** A library that several applications share keeps none of them. */
final class ClassLoaderTest {
    @Test
    void anApplicationThatIsGoneIsCollected() throws Exception {
        Process process = Witness.program(Host.class.getName()).redirectErrorStream(true).start();
        String said = new String(process.getInputStream().readAllBytes());
        assertEquals("gone", said.strip());
        assertEquals(0, process.waitFor());
    }
}
