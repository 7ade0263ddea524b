package io.github.fencelock;

import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;

/** Renders the core's table of options as the interfaces of the Java package, and its times as functions of the Kotlin package. */
final class OptionTable {
    private static final int WIDTH = 110;

    private OptionTable() {}

    private static List<Map<String, Object>> rows(String scope) {
        return Shape.list(Parcel.read(Natives.table())).stream().map(Shape::map)
            .filter(row -> row.get("scope").equals(scope)).toList();
    }

    /** The interface with this name, of the rows of this scope and of another interface. */
    static String java(String name, String above, String scope, String intro) {
        String methods = rows(scope).stream().map(OptionTable::method).collect(Collectors.joining("\n"));
        String any = documented("Sets any option by its name in the table, from text, a number, a boolean, a duration or a map. "
            + "An unknown one is refused, with the nearest known one, by whatever is done then.");
        String type = documentedType(intro + " Written from the core's table of options; `OptionTableTest` keeps it so.");
        return "package io.github.fencelock;\n\nimport java.time.Duration;\n\n" + type
            + "public interface " + name + "<T>" + (above.isEmpty() ? " {\n" + any + "    T option(String name, Object value);\n\n"
                : " extends " + above + "<T> {\n") + methods + "}\n";
    }

    /** The options that are times, with Kotlin's duration. */
    static String kotlin() {
        return "// Written from the core's table of options; `OptionTableTest` keeps it so.\npackage io.github.fencelock.kotlin\n\n"
            + "import io.github.fencelock.ElectionOptions\nimport io.github.fencelock.HoldOptions\nimport io.github.fencelock.JobOptions\n"
            + "import io.github.fencelock.LockOptions\nimport io.github.fencelock.StoreOptions\nimport io.github.fencelock.VersionOptions\n"
            + "import io.github.fencelock.WaitOptions\nimport kotlin.time.Duration\n" + functions("hold", "HoldOptions")
            + functions("wait", "WaitOptions") + functions("lock", "LockOptions")
            + functions("job", "JobOptions") + functions("election", "ElectionOptions") + functions("version", "VersionOptions")
            + functions("client", "StoreOptions");
    }

    private static String functions(String scope, String type) {
        return rows(scope).stream().filter(row -> ((String) row.get("kind")).endsWith("duration")).map(row -> {
            String name = name(row);
            String none = row.get("kind").equals("duration") ? "" : "; infinite is none";
            return "\n/** [" + type + "." + name + "] with Kotlin's duration" + none + ". */\npublic fun <T> " + type + "<T>." + name
                + "(" + name + ": Duration): T = " + name + "(" + name + ".orNone())\n";
        }).collect(Collectors.joining());
    }

    private static String method(Map<String, Object> row) {
        String option = (String) row.get("name");
        String name = name(row);
        String standard = ((String) row.get("default")).isEmpty() ? "empty" : "`" + row.get("default") + "`";
        boolean optional = row.get("kind").equals("optional_duration");
        String doc = row.get("doc") + " By default " + standard + (optional ? ", which is `null` here." : ".");
        return documented(doc) + "    default T " + name + "(" + type((String) row.get("kind")) + " " + name + ") {\n        return option(\""
            + option + "\", " + name + ");\n    }\n";
    }

    private static String name(Map<String, Object> row) {
        // `lock.wait(5000)` would be that of `Object`.
        return row.get("name").equals("wait") ? "waitAtMost" : camel((String) row.get("name"));
    }

    private static String type(String kind) {
        return switch (kind) {
            case "duration", "optional_duration" -> "Duration";
            case "boolean" -> "boolean";
            case "integer" -> "int";
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

    private static String documentedType(String doc) {
        return ("    /**\n" + wrapped(code(doc)) + "     *\n     * @param <T> what has these options\n     */\n").replaceAll("(?m)^    ", "");
    }

    private static String documented(String doc) {
        return "    /**\n" + wrapped(code(doc)) + "     */\n";
    }

    /** Code stands between backticks in the table. */
    private static String code(String doc) {
        return doc.replaceAll("`([^`]*)`", "{@code $1}");
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
