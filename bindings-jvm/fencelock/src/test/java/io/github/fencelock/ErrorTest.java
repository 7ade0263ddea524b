package io.github.fencelock;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletionException;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Errors are exceptions, a class for each code there is. */
final class ErrorTest {
    /** The codes as the document of all languages has them. */
    private static List<String> codes() throws IOException {
        String errors = Files.readString(Path.of("../../docs/reference/errors.md"));
        return Pattern.compile("^\\| `(\\w+)` \\|", Pattern.MULTILINE).matcher(errors).results()
            .map((MatchResult found) -> found.group(1)).toList();
    }

    @Test
    void everyCodeHasAClass() throws IOException {
        Set<Class<?>> classes = new HashSet<>();
        for (String code : codes()) {
            Map<String, String> fields = Map.of("name", "orders:42");
            FencelockException error = FencelockException.of(
                Map.of("code", code, "message", "what to do", "retryable", true, "fields", fields));
            assertEquals(code, error.code().toString());
            assertEquals(List.of("what to do", true, fields), List.of(error.getMessage(), error.retryable(), error.fields()));
            classes.add(error.getClass());
        }
        assertEquals(Code.values().length, codes().size());
        assertEquals(Code.values().length, classes.size());
    }

    @ParameterizedTest
    @CsvSource({
        "reddis://127.0.0.1, no store goes by that scheme", "http://127.0.0.1:6379, no store goes by that scheme",
        "sqlite:, names no file", "sqlite://, names no file", "redis:/127.0.0.1, must look like", "redis:, must look like",
        "redis:///3, must look like", "etcd:///x, must look like", "postgres://user@host, names no database",
        "'zookeeper://a,b/x//y', no path on ZooKeeper", "memory://host, names no host", "127.0.0.1:6379, 'redis://host:6379'",
        "'', 'redis://host:6379'"})
    void aWrongUrlIsRefusedBeforeAnythingIsAsked(String url, String says) {
        InvalidArgumentException refused = assertThrows(InvalidArgumentException.class, () -> Fencelock.connect(url));
        assertEquals(Code.INVALID, refused.code());
        assertEquals("url", refused.fields().get("argument"));
        assertFalse(refused.retryable());
        assertTrue(refused.getMessage().contains(says), refused::getMessage);
        // U40: the facts, once.
        assertEquals(2, refused.toString().split("argument: url", -1).length, refused::toString);
        CompletionException later =
            assertThrows(CompletionException.class, () -> Fencelock.connectAsync(url, new ClientOptions()).join());
        assertEquals(refused.getMessage(), later.getCause().getMessage());
    }
}
