package io.github.fencelock;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;

/** The options of both packages are those of the core's table. {@code -Dfencelock.write} writes them anew. */
final class OptionTableTest {
    private static final Path JAVA = Path.of("src/main/java/io/github/fencelock");
    private static final Path KOTLIN = Path.of("../fencelock-kotlin/src/main/kotlin/io/github/fencelock/kotlin/Options.kt");

    private static void compare(Path file, String rendered) throws IOException {
        if (System.getProperty("fencelock.write") != null) {
            Files.writeString(file, rendered);
        }
        assertEquals(rendered, Files.readString(file), file + " is not what the table says; -Dfencelock.write writes it");
    }

    private static void compare(String name, String above, String scope, String intro) throws IOException {
        compare(JAVA.resolve(name + ".java"), OptionTable.java(name, above, scope, intro));
    }

    @Test
    void timesInKotlinAreThoseOfTheTable() throws IOException {
        compare(KOTLIN, OptionTable.kotlin());
    }

    @Test
    void optionsAreThoseOfTheTable() throws IOException {
        compare("HoldOptions", "", "hold", "Options of whatever is held: a lock, a run of a job, an office.");
        compare("WaitOptions", "HoldOptions", "wait", "Options that a lock and an election have.");
        compare("LockOptions", "WaitOptions", "lock", "Options of a lock.");
        compare("JobOptions", "HoldOptions", "job", "Options of a job.");
        compare("ElectionOptions", "WaitOptions", "election", "Options of an election.");
        compare("VersionOptions", "", "version", "Options of a version.");
        compare("StoreOptions", "", "client", "Options that only a client has: how it deals with its store.");
    }
}
