import com.google.gson.Gson;
import com.google.gson.GsonBuilder;
import com.google.gson.JsonObject;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicLong;

/** Redisson, Spring Integration, Curator, jetcd or ShedLock as an actor; tests/README.md has the protocol. */
public final class Actor {
    private static final Gson GSON = new GsonBuilder().serializeNulls().create();
    private static final AtomicLong NUMBERS = new AtomicLong();
    private static final Map<Long, Library.Held> GUARDS = new ConcurrentHashMap<>();
    private static String name;
    private static Library library;
    private static JsonObject defaults = new JsonObject();

    private static Object connect(JsonObject request) throws Exception {
        String url = request.get("url").getAsString();
        defaults = request.getAsJsonObject("options");
        library = switch (name) {
            case "redisson" -> new RedissonLibrary(url, defaults);
            case "spring" -> new SpringLibrary(url);
            case "curator" -> new CuratorLibrary(url, defaults);
            case "jetcd" -> new JetcdLibrary(url, defaults);
            case "shedlock" -> new ShedLockLibrary(url);
            case "spring-jdbc" -> new SpringJdbcLibrary(url, defaults);
            default -> throw new IllegalArgumentException("there is no library " + name);
        };
        // The first use loads half the classes, for seconds on a busy machine: that is over before a case begins.
        library.take("warm-up:" + ProcessHandle.current().pid(), 0, defaults).release();
        return null;
    }

    private static Object take(JsonObject request, boolean once) throws Exception {
        JsonObject options = defaults.deepCopy();
        request.getAsJsonObject("options").entrySet().forEach(one -> options.add(one.getKey(), one.getValue()));
        if (request.has("mode") && !options.has("kind")) {
            options.add("kind", request.get("mode"));
            options.add("permits", request.get("permits"));
        }
        long wait = once ? 0 : options.has("wait") ? options.get("wait").getAsLong() : Integer.MAX_VALUE;
        Library.Held held = library.take(request.get("lock").getAsString(), wait, options);
        if (held == null && !once) {
            throw new TimeoutException("the wait ended before the lock was granted");
        }
        if (held == null) {
            return null;
        }
        long number = NUMBERS.incrementAndGet();
        GUARDS.put(number, held);
        return Map.of("guard", number, "token", 0);
    }

    private static Object answer(JsonObject request) throws Exception {
        return switch (request.get("op").getAsString()) {
            case "ping" -> Map.of("actor", name, "pid", ProcessHandle.current().pid());
            case "connect" -> connect(request);
            case "acquire" -> take(request, false);
            case "try" -> take(request, true);
            case "release" -> GUARDS.remove(request.get("guard").getAsLong()).release();
            default -> throw new IllegalArgumentException("this actor does not know " + request.get("op"));
        };
    }

    private static void serve(JsonObject request) {
        Map<String, Object> message = new LinkedHashMap<>();
        message.put("id", request.get("id"));
        try {
            message.put("ok", answer(request));
        } catch (Exception error) {
            boolean timeout = error instanceof TimeoutException;
            message.put("error", Map.of(
                "code", timeout ? "timeout" : "internal", "message", error.toString(), "retryable", timeout));
        }
        synchronized (System.out) {
            System.out.println(GSON.toJson(message));
            System.out.flush();
        }
    }

    public static void main(String[] arguments) throws Exception {
        name = arguments[0];
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            JsonObject request = GSON.fromJson(line, JsonObject.class);
            switch (request.get("op").getAsString()) {
                case "crash" -> Runtime.getRuntime().halt(9);
                case "connect" -> serve(request);
                default -> new Thread(() -> serve(request)).start();
            }
        }
        Runtime.getRuntime().halt(0);
    }
}
