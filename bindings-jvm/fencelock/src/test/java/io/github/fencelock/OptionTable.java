package io.github.fencelock;

import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;

/** Renders the core's table of options as the interfaces of the Java and the Kotlin package. */
final class OptionTable {
    private static final int WIDTH = 110;

    private final boolean kotlin;

    OptionTable(boolean kotlin) {
        this.kotlin = kotlin;
    }

    private static List<Map<String, Object>> rows(String scope) {
        return Shape.list(Parcel.read(Natives.table())).stream().map(Shape::map)
            .filter(row -> row.get("scope").equals(scope)).toList();
    }

    /** The interface with this name, of the rows of this scope. */
    String render(String name, String scope, String intro) {
        String methods = rows(scope).stream().map(this::method).collect(Collectors.joining("\n"));
        String any = documented("Sets any option by its name in the table, from text, a number, a boolean, a duration or a map. "
            + "An unknown one is refused, with the nearest known one, by whatever is done then.");
        String type = documentedType(intro + " Written from the core's table of options; `OptionTableTest` keeps it so.");
        return kotlin
            ? "package io.github.fencelock.kotlin\n\nimport kotlin.time.Duration\n\n" + type
                + "public interface " + name + "<T> {\n" + any + "    public fun option(name: String, value: Any?): T\n\n"
                + methods + "}\n"
            : "package io.github.fencelock;\n\n" + imports(scope) + type
                + "public interface " + name + "<T> {\n" + any + "    T option(String name, Object value);\n\n"
                + methods + "}\n";
    }

    private static String imports(String scope) {
        boolean maps = rows(scope).stream().anyMatch(row -> row.get("kind").equals("map"));
        return "import java.time.Duration;\n" + (maps ? "import java.util.Map;\n" : "") + "\n";
    }

    private String method(Map<String, Object> row) {
        String option = (String) row.get("name");
        // `lock.wait(5000)` would be that of `Object`.
        String name = option.equals("wait") ? "waitAtMost" : camel(option);
        String standard = ((String) row.get("default")).isEmpty() ? "empty" : "`" + row.get("default") + "`";
        boolean optional = row.get("kind").equals("optional_duration");
        String doc = row.get("doc") + " By default " + standard + (optional ? ", which is `null` here." : ".");
        String type = type((String) row.get("kind"));
        return documented(doc) + (kotlin
            ? "    public fun " + name + "(" + name + ": " + type + "): T = option(\"" + option + "\", " + name + ")\n"
            : "    default T " + name + "(" + type + " " + name + ") {\n        return option(\"" + option + "\", " + name
                + ");\n    }\n");
    }

    private String type(String kind) {
        return switch (kind) {
            case "duration" -> "Duration";
            case "optional_duration" -> kotlin ? "Duration?" : "Duration";
            case "boolean" -> kotlin ? "Boolean" : "boolean";
            case "integer" -> kotlin ? "Int" : "int";
            case "map" -> kotlin ? "Map<String, String>" : "Map<String, String>";
            default -> "String";
        };
    }

    private static String camel(String name) {
        String[] words = name.split("_");
        StringBuilder camel = new StringBuilder(words[0]);
        for (int word = 1; word < words.length; word++) {
            camel.append(Character.toUpperCase(words[word].charAt(0))).append(words[word].substring(1));
        }
        return camel.toString();
    }

    private String documentedType(String doc) {
        return ("    /**\n" + wrapped(code(doc)) + "     *\n     * @param "
            + (kotlin ? "T what has these options.\n" : "<T> what has these options\n") + "     */\n")
            .replaceAll("(?m)^    ", "");
    }

    private String documented(String doc) {
        return "    /**\n" + wrapped(code(doc)) + "     */\n";
    }

    /** Code stands between backticks in the table. */
    private String code(String doc) {
        return kotlin ? doc : doc.replaceAll("`([^`]*)`", "{@code $1}");
    }

    private static String wrapped(String doc) {
        StringBuilder lines = new StringBuilder();
        StringBuilder line = new StringBuilder();
        for (String word : doc.split("\\s+")) {
            if (line.length() + 1 + word.length() > WIDTH) {
                lines.append("     *").append(line).append('\n');
                line.setLength(0);
            }
            line.append(' ').append(word);
        }
        return lines.append("     *").append(line).append('\n').toString();
    }
}
