package io.github.fencelock;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The file that the core is unpacked into. */
final class NativeLibraryTest {
    @Test
    void aFileThatTheSystemKeepsIsDeletedByTheNextProcess(@TempDir Path folder) throws IOException {
        // A folder with something in it stands for the file of a library that Windows has loaded: neither can be deleted.
        Path loaded = Files.createDirectory(folder.resolve("fencelock-1.library"));
        Path use = Files.createFile(loaded.resolve("use"));
        NativeLibrary.discard(loaded);
        assertEquals(List.of("fencelock-1.library.loaded"), in(folder));
        Files.delete(folder.resolve("fencelock-1.library.loaded").resolve(use.getFileName()));

        Path next = Files.createDirectory(folder.resolve("fencelock-2.library"));
        Files.createFile(next.resolve("use"));
        NativeLibrary.discard(next);
        assertEquals(List.of("fencelock-2.library.loaded"), in(folder));
    }

    private static List<String> in(Path folder) throws IOException {
        try (Stream<Path> all = Files.list(folder)) {
            return all.map(one -> one.getFileName().toString()).toList();
        }
    }
}
