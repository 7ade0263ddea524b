package io.github.fencelock;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.DirectoryStream;
import java.nio.file.FileSystemException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/** The core as it travels inside the jar: a library for each platform. */
final class NativeLibrary {
    /** Names a library to load instead of the jar's, where files in the temporary folder must not be executed. */
    static final String PROPERTY = "fencelock.library";

    /** Those of a release, by their folders in the jar, which are the classifiers of the jars for one platform. */
    private static final List<String> PLATFORMS = List.of(
        "linux-x86_64", "linux-x86_64-musl", "linux-aarch64", "linux-aarch64-musl", "macos-x86_64", "macos-aarch64",
        "windows-x86_64", "windows-aarch64");

    /** Why there is none; null if it was loaded. */
    private static final UnsupportedException REFUSAL = refusal();

    private NativeLibrary() {}

    /** Has it loaded, once; throws whenever it cannot be. */
    static void require() {
        if (REFUSAL != null) {
            throw new UnsupportedException(REFUSAL.getMessage(), false, REFUSAL.fields());
        }
    }

    private static UnsupportedException refusal() {
        try {
            load();
            return null;
        } catch (UnsupportedException refused) {
            return refused;
        }
    }

    private static void load() {
        String given = System.getProperty(PROPERTY);
        try {
            if (given != null) {
                System.load(Path.of(given).toAbsolutePath().toString());
            } else {
                loadForAnyLibc(platform(System.getProperty("os.name"), System.getProperty("os.arch")));
            }
        } catch (UnsatisfiedLinkError refused) {
            String hint = given != null ? "" : "; if it lies in a temporary folder that runs nothing (noexec), point the property `" + PROPERTY
                + "` at a copy elsewhere";
            throw unsupported("the system refuses to load fencelock's library: " + refused.getMessage() + hint);
        } catch (IOException failed) {
            throw unsupported("fencelock's library cannot be unpacked; point the property `" + PROPERTY
                + "` at one: " + failed);
        }
    }

    /** The folder of a platform inside the jar. */
    static String platform(String system, String processor) {
        String lower = system.toLowerCase(Locale.ROOT);
        String name = lower.startsWith("mac") ? "macos" : lower.split(" ")[0];
        return name + "-" + processor.toLowerCase(Locale.ROOT).replace("amd64", "x86_64").replace("arm64", "aarch64");
    }

    /** Java does not tell which C library it runs on: what does not load with glibc's is meant for musl. */
    static void loadForAnyLibc(String platform) throws IOException {
        List<String> candidates = Stream.of(platform, platform + "-musl").filter(NativeLibrary::isInJar).toList();
        if (candidates.isEmpty()) {
            String there = PLATFORMS.stream().filter(NativeLibrary::isInJar).collect(Collectors.joining(", "));
            throw unsupported("this jar has no library for " + platform + ", but for " + there
                + "; the jar without a classifier has those for all platforms: " + String.join(", ", PLATFORMS));
        }
        try {
            loadFromJar(candidates.get(0));
        } catch (UnsatisfiedLinkError refused) {
            if (candidates.size() == 1) {
                throw refused;
            }
            loadFromJar(candidates.get(1));
        }
    }

    private static boolean isInJar(String platform) {
        return NativeLibrary.class.getResource(resource(platform)) != null;
    }

    private static String resource(String platform) {
        return "natives/" + platform + "/fencelock";
    }

    private static void loadFromJar(String platform) throws IOException {
        try (InputStream library = NativeLibrary.class.getResourceAsStream(resource(platform))) {
            Path unpacked = Files.createTempFile("fencelock-", ".library");
            try {
                Files.copy(library, unpacked, StandardCopyOption.REPLACE_EXISTING);
                System.load(unpacked.toString());
            } finally {
                discard(unpacked);
            }
        }
    }

    /**
     * Leaves nothing behind: what is loaded stays loaded without its name. Windows keeps the file for as long as the process lives, but
     * renames it; the next process deletes it.
     */
    static void discard(Path unpacked) throws IOException {
        try {
            Files.delete(unpacked);
        } catch (FileSystemException kept) {
            Files.move(unpacked, unpacked.resolveSibling(unpacked.getFileName() + ".loaded"));
            try (DirectoryStream<Path> all = Files.newDirectoryStream(unpacked.getParent(), "fencelock-*.loaded")) {
                for (Path one : all) {
                    try {
                        Files.delete(one);
                    } catch (FileSystemException inUse) {
                        // Its process still runs.
                    }
                }
            }
        }
    }

    private static UnsupportedException unsupported(String message) {
        return new UnsupportedException(message, false, Map.of());
    }
}
