import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.jar.JarFile;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import javax.xml.parsers.DocumentBuilderFactory;
import javax.xml.xpath.XPathFactory;

/**
 * The packages as they leave the house, read from the jars and poms of a Maven repository: {@code java Packages.java REPOSITORY}.
 * A release brings the documentation of both along ({@code -Drelease=true}), what is made for tests that of the Java package.
 */
public final class Packages {
    private static final Map<String, String> PACKAGES = Map.of("fencelock", "java", "fencelock-kotlin", "kotlin");
    private static final List<String> LICENCES = List.of("LICENSE-APACHE", "LICENSE-MIT");
    private static final Pattern PUBLIC =
        Pattern.compile("^public (?:[a-z]+ )*?(?:class|enum|interface|object|record) (\\w+)", Pattern.MULTILINE);
    /** The page of a file of functions has the file's name. */
    private static final Pattern FUNCTION = Pattern.compile("^(public )(?:[a-z]+ )*fun ", Pattern.MULTILINE);
    private static final boolean RELEASE = Boolean.getBoolean("release");

    private final List<String> complaints = new ArrayList<>();
    private final Path folder;
    private final Path project;

    private Packages(Path repository) {
        folder = repository.resolve("io/github/fencelock");
        project = Path.of("..");
    }

    public static void main(String[] words) throws Exception {
        Packages packages = new Packages(Path.of(words[0]));
        packages.check();
        if (packages.complaints.isEmpty()) {
            System.out.println("packages for Java and Kotlin: as they may leave the house");
        } else {
            packages.complaints.forEach(System.err::println);
            System.exit(1);
        }
    }

    private void expect(boolean is, String what) {
        if (!is) {
            complaints.add(what);
        }
    }

    private void check() throws Exception {
        Path cargo = project.resolve("Cargo.toml");
        String home = found(Pattern.compile("^repository = \"(.+)\"", Pattern.MULTILINE), cargo).get(0);
        String version = found(Pattern.compile("^version = \"(.+)\"", Pattern.MULTILINE), cargo).get(0);
        expect(names(folder).equals(new TreeSet<>(PACKAGES.keySet())), "deployed are " + names(folder));
        for (String name : PACKAGES.keySet()) {
            Path at = folder.resolve(name).resolve(version);
            String stem = name + "-" + version;
            boolean documented = RELEASE || name.equals("fencelock");
            TreeSet<String> wanted = new TreeSet<>(List.of(stem + ".jar", stem + ".pom", stem + "-sources.jar"));
            if (documented) {
                wanted.add(stem + "-javadoc.jar");
            }
            TreeSet<String> files = names(at);
            files.removeIf(file -> file.matches(".*\\.(md5|sha\\d+)"));
            expect(files.equals(wanted), name + " consists of " + files);
            Path pom = at.resolve(stem + ".pom");
            pom(pom, home);
            try (JarFile jar = new JarFile(at.resolve(stem + ".jar").toFile());
                 JarFile sources = new JarFile(at.resolve(stem + "-sources.jar").toFile())) {
                String inside = text(jar, "META-INF/maven/io.github.fencelock/" + name + "/pom.xml");
                expect(Files.readString(pom).equals(inside), name + ": another pom in the jar");
                manifest(jar, home, version);
                for (JarFile file : List.of(jar, sources)) {
                    licensed(file);
                    withoutTests(file);
                }
            }
            if (documented) {
                try (JarFile pages = new JarFile(at.resolve(stem + "-javadoc.jar").toFile())) {
                    documented(pages, Path.of(name, "src/main", PACKAGES.get(name)));
                }
            }
        }
    }

    private void pom(Path file, String home) throws Exception {
        var document = DocumentBuilderFactory.newInstance().newDocumentBuilder().parse(file.toFile());
        var paths = XPathFactory.newInstance().newXPath();
        var said = new TreeMap<String, String>();
        for (String path : List.of("url", "scm/url", "issueManagement/url", "licenses/license[1]/name", "licenses/license[2]/name")) {
            said.put(path, paths.evaluate("/project/" + path, document));
        }
        var wanted = Map.of("url", home, "scm/url", home, "issueManagement/url", home + "/issues",
            "licenses/license[1]/name", "MIT", "licenses/license[2]/name", "Apache-2.0");
        expect(said.equals(wanted), file.getFileName() + " says " + said);
        for (String absent : List.of("parent", "modules", "profiles", "dependencies/dependency[scope='test']")) {
            expect(paths.evaluate("/project/" + absent, document).isEmpty(), file.getFileName() + " has " + absent);
        }
    }

    private void manifest(JarFile jar, String home, String version) throws IOException {
        var main = jar.getManifest().getMainAttributes();
        Map.of("Implementation-Version", version, "Implementation-URL", home,
            "Bundle-DocURL", home + "/tree/main/bindings-jvm#readme", "Changelog-URL", home + "/blob/main/CHANGELOG.md")
            .forEach((name, value) -> expect(value.equals(main.getValue(name)), jar.getName() + ": " + name + " is " + main.getValue(name)));
    }

    private void licensed(JarFile jar) throws IOException {
        for (String licence : LICENCES) {
            String text = text(jar, "META-INF/" + licence);
            expect(Files.readString(project.resolve(licence)).equals(text), jar.getName() + " has not the project's " + licence);
        }
    }

    /** Nothing of what tests and actors are made of. */
    private void withoutTests(JarFile jar) throws IOException {
        for (String root : List.of("fencelock/src/test/java", "fencelock-kotlin/src/test/kotlin", "actor/src/main/java", "actor/src/main/kotlin")) {
            for (Path source : sources(Path.of(root))) {
                String stem = Path.of(root).relativize(source).toString().replaceFirst("\\.\\w+$", "");
                jar.stream().filter(entry -> entry.getName().matches(Pattern.quote(stem) + "(Kt)?(\\$.*)?\\.\\w+"))
                    .forEach(entry -> complaints.add(jar.getName() + " has " + entry.getName()));
            }
        }
    }

    /** A page for everything public. */
    private void documented(JarFile pages, Path root) throws IOException {
        for (Path source : sources(root)) {
            List<String> names = new ArrayList<>(found(PUBLIC, source));
            if (!found(FUNCTION, source).isEmpty()) {
                names.add(source.getFileName().toString().replace(".kt", "Kt"));
            }
            for (String name : names) {
                String page = root.relativize(source).resolveSibling(name + ".html").toString();
                expect(pages.stream().anyMatch(entry -> entry.getName().endsWith(page)), pages.getName() + " has no " + page);
            }
        }
    }

    private static List<String> found(Pattern pattern, Path file) throws IOException {
        return pattern.matcher(Files.readString(file)).results().map((MatchResult one) -> one.group(1)).toList();
    }

    private static List<Path> sources(Path root) throws IOException {
        try (Stream<Path> files = Files.walk(root)) {
            return files.filter(Files::isRegularFile).toList();
        }
    }

    private static TreeSet<String> names(Path folder) {
        return Stream.of(folder.toFile().list()).collect(Collectors.toCollection(TreeSet::new));
    }

    private static String text(JarFile jar, String name) throws IOException {
        var entry = jar.getEntry(name);
        return entry == null ? null : new String(jar.getInputStream(entry).readAllBytes(), StandardCharsets.UTF_8);
    }
}
