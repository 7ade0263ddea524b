package io.github.fencelock;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import javax.tools.ToolProvider;
import org.junit.jupiter.api.Test;

/** The example that is a program: it sells too much without a lock, and what there is with one. */
public final class ShopTest {
    /** Runs the words of a shop's program, and looks at its verdict. */
    public static void sells(String... program) throws Exception {
        String said = said(start(program), 0);
        assertTrue(sold(said, "no lock") > 50, said);
        assertEquals(50, sold(said, "lock"), said);
    }

    /** Starts a program whose class path ours is. */
    public static Process start(String... program) throws IOException {
        List<String> java = List.of(Path.of(System.getProperty("java.home"), "bin", "java").toString(), "-cp",
            System.getProperty("java.class.path"));
        return new ProcessBuilder(Stream.concat(java.stream(), Stream.of(program)).toList()).redirectErrorStream(true).start();
    }

    /** Its output, if it ends with this code. */
    public static String said(Process process, int code) throws Exception {
        String said = new String(process.getInputStream().readAllBytes());
        assertEquals(code, process.waitFor(), said);
        return said;
    }

    private static int sold(String said, String way) {
        Matcher line = Pattern.compile("^" + way + " +sold +(\\d+),", Pattern.MULTILINE).matcher(said);
        assertTrue(line.find(), said);
        return Integer.parseInt(line.group(1));
    }

    @Test
    void javaOversellsWithoutALockOnly() throws Exception {
        assumeTrue(ToolProvider.getSystemJavaCompiler() != null, "a JRE compiles nothing");
        sells("../../examples/inventory/Inventory.java", Stores.redis().url());
    }
}
