package io.github.fencelock;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import java.util.spi.ToolProvider;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;

/** The public API of a package is the one in its {@code api.txt}. {@code -Dfencelock.write} writes that anew. */
public final class ApiTest {
    @Test
    void theApiIsTheListedOne() throws IOException {
        compare(Client.class, Path.of("api.txt"), List.of());
    }

    /** Compares the public classes beside this one, without some, with the list. */
    public static void compare(Class<?> one, Path list, List<String> without) throws IOException {
        Optional<ToolProvider> javap = ToolProvider.findFirst("javap");
        Assumptions.assumeTrue(javap.isPresent(), "a JRE has no javap");
        Path root = Path.of(one.getProtectionDomain().getCodeSource().getLocation().getPath());
        String[] words;
        try (Stream<Path> files = Files.list(root.resolve(one.getPackageName().replace('.', '/')))) {
            Stream<String> classes = files.map(Path::toString).filter(file -> file.endsWith(".class")).sorted();
            words = Stream.concat(Stream.of("-public"), classes).toArray(String[]::new);
        }
        StringWriter printed = new StringWriter();
        javap.get().run(new PrintWriter(printed), new PrintWriter(printed), words);
        // Some versions write the exceptions of a generic method with slashes.
        String api = Arrays.stream(printed.toString().replace('/', '.').split("(?m)^Compiled from .*\\R"))
            .filter(each -> each.startsWith("public ") && without.stream().noneMatch(each::contains))
            .collect(Collectors.joining("\n"));
        if (System.getProperty("fencelock.write") != null) {
            Files.writeString(list, api);
        }
        assertEquals(Files.readString(list), api, "the API has changed; -Dfencelock.write writes " + list);
    }
}
