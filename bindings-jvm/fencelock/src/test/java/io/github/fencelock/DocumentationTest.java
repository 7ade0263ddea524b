package io.github.fencelock;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.io.StringWriter;
import java.net.URI;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import javax.tools.DiagnosticCollector;
import javax.tools.JavaCompiler;
import javax.tools.JavaFileObject;
import javax.tools.SimpleJavaFileObject;
import javax.tools.ToolProvider;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Everything public is documented, and the examples there run. */
final class DocumentationTest {
    private static final Path SOURCES = Path.of("src/main/java/io/github/fencelock");
    private static final Pattern EXAMPLE = Pattern.compile("<pre>\\{@code\n(.*?)\\}</pre>", Pattern.DOTALL);
    private static final List<Path> READMES = List.of(Path.of("../../README.md"), Path.of("../README.md"));
    private static final List<Path> GUIDES = List.of(Path.of("../../docs/tutorial"), Path.of("../../docs/how-to"));
    private static final Pattern BLOCK = Pattern.compile("```java\n(.*?)```", Pattern.DOTALL);
    private static final int LEAST = 16;
    /** The declarations that the examples use and do not contain. */
    private static final String PRELUDE = """
        import io.github.fencelock.*;
        import java.time.*;
        import java.util.*;
        public class Examples {
        static final String order = "42";
        static void charge(String order, long token) { assert token > 0; }
        """;

    private static JavaCompiler compiler() {
        JavaCompiler compiler = ToolProvider.getSystemJavaCompiler();
        assumeTrue(compiler != null, "this is no JDK");
        return compiler;
    }

    private static List<Path> sources() throws IOException {
        return files(SOURCES);
    }

    private static List<Path> files(Path folder) throws IOException {
        try (Stream<Path> files = Files.list(folder)) {
            return files.sorted().toList();
        }
    }

    private static List<String> blocks(Path file) throws IOException {
        return BLOCK.matcher(Files.readString(file)).results().map(found -> found.group(1)).toList();
    }

    @Test
    void everythingPublicIsDocumented(@TempDir Path folder) throws IOException {
        JavaCompiler compiler = compiler();
        DiagnosticCollector<JavaFileObject> told = new DiagnosticCollector<>();
        var files = compiler.getStandardFileManager(told, null, null).getJavaFileObjectsFromPaths(sources());
        List<String> words = List.of("-Xdoclint:all/public", "-Xmaxwarns", "10000", "-d", folder.toString());
        assertTrue(compiler.getTask(new StringWriter(), null, told, words, null, files).call());
        List<String> undocumented = told.getDiagnostics().stream()
            .filter(one -> one.getMessage(null).contains("no comment"))
            .map(one -> Path.of(one.getSource().getName()).getFileName() + ":" + one.getLineNumber()).toList();
        assertEquals(List.of(), undocumented);
    }

    @Test
    void theExamplesRun(@TempDir Path folder) throws Exception {
        JavaCompiler compiler = compiler();
        List<String> examples = new ArrayList<>();
        for (Path file : sources()) {
            Matcher found = EXAMPLE.matcher(Files.readString(file));
            while (found.find()) {
                examples.add(found.group(1).replaceAll("(?m)^ *\\* ?", ""));
            }
        }
        for (Path file : READMES) {
            assertTrue(examples.addAll(blocks(file)), () -> file + " has no block");
        }
        for (Path guide : GUIDES) {
            for (Path file : files(guide)) {
                examples.addAll(blocks(file));
            }
        }
        examples.replaceAll(example -> example.replace("redis://127.0.0.1", Stores.redis().url()));
        assertTrue(examples.size() >= LEAST, "there are only " + examples.size());
        StringBuilder program = new StringBuilder(PRELUDE);
        for (int number = 0; number < examples.size(); number++) {
            program.append("public static void example").append(number).append("() throws Exception {\n")
                .append(examples.get(number)).append("}\n");
        }
        JavaFileObject source = new SimpleJavaFileObject(URI.create("string:///Examples.java"), JavaFileObject.Kind.SOURCE) {
            @Override
            public CharSequence getCharContent(boolean lenient) {
                return program + "}\n";
            }
        };
        StringWriter said = new StringWriter();
        // What a user has: the package, and a JDK.
        URL own = Fencelock.class.getProtectionDomain().getCodeSource().getLocation();
        List<String> words = List.of("-cp", Path.of(own.toURI()).toString(), "-d", folder.toString());
        assertTrue(compiler.getTask(said, null, null, words, null, List.of(source)).call(), said::toString);
        URL[] places = {folder.toUri().toURL(), own};
        try (URLClassLoader loader = new URLClassLoader(places, ClassLoader.getPlatformClassLoader())) {
            loader.setDefaultAssertionStatus(true);
            Class<?> made = loader.loadClass("Examples");
            for (int number = 0; number < examples.size(); number++) {
                made.getMethod("example" + number).invoke(null);
            }
        }
    }
}
