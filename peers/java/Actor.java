import com.google.gson.Gson;
import com.google.gson.GsonBuilder;
import com.google.gson.JsonObject;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicLong;
import org.redisson.Redisson;
import org.redisson.api.RFuture;
import org.redisson.api.RLock;
import org.redisson.api.RSemaphore;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;

/**
 * Redisson as an actor; tests/README.md has the protocol. The option `kind` chooses among its locks: mutex (the default),
 * fair, read, write, permit. Every guard is a thread of its own to Redisson, as every guard of fencelock is its own owner.
 */
public final class Actor {
    private static final Gson GSON = new GsonBuilder().serializeNulls().create();
    private static final AtomicLong NUMBERS = new AtomicLong();
    private static final Map<Long, Held> GUARDS = new ConcurrentHashMap<>();
    private static RedissonClient client;
    private static JsonObject defaults = new JsonObject();

    /** What a guard stands for. */
    private interface Held {
        String release() throws Exception;
    }

    private record Lock(RLock lock, long thread) implements Held {
        public String release() throws Exception {
            try {
                lock.unlockAsync(thread).get();
                return "released";
            } catch (java.util.concurrent.ExecutionException error) {
                if (error.getCause() instanceof IllegalMonitorStateException) {
                    return "already_lost";
                }
                throw error;
            }
        }
    }

    private record Permit(RSemaphore semaphore) implements Held {
        public String release() throws Exception {
            semaphore.releaseAsync().get();
            return "released";
        }
    }

    private static JsonObject options(JsonObject request) {
        JsonObject options = defaults.deepCopy();
        if (request.has("options")) {
            request.getAsJsonObject("options").entrySet().forEach(one -> options.add(one.getKey(), one.getValue()));
        }
        return options;
    }

    private static RLock lock(String kind, String name) {
        return switch (kind) {
            case "mutex" -> client.getLock(name);
            case "fair" -> client.getFairLock(name);
            case "read" -> client.getReadWriteLock(name).readLock();
            case "write" -> client.getReadWriteLock(name).writeLock();
            default -> throw new IllegalArgumentException("Redisson has no kind " + kind);
        };
    }

    private static Object take(JsonObject request, boolean once) throws Exception {
        JsonObject options = options(request);
        String name = request.get("lock").getAsString();
        String kind = options.has("kind") ? options.get("kind").getAsString() : "mutex";
        long wait = once ? 0 : options.has("wait") ? options.get("wait").getAsLong() : Integer.MAX_VALUE;
        long number = NUMBERS.incrementAndGet();
        RFuture<Boolean> future;
        Held held;
        if (kind.equals("permit")) {
            RSemaphore semaphore = client.getSemaphore(name);
            semaphore.trySetPermits(options.get("permits").getAsInt());
            future = semaphore.tryAcquireAsync(1, wait, TimeUnit.MILLISECONDS);
            held = new Permit(semaphore);
        } else {
            boolean renew = options.has("renew") && options.get("renew").getAsBoolean();
            // Without a lease the watchdog renews, at a third of its timeout.
            long lease = renew ? -1 : options.get("ttl").getAsLong();
            RLock lock = lock(kind, name);
            future = lock.tryLockAsync(wait, lease, TimeUnit.MILLISECONDS, number);
            held = new Lock(lock, number);
        }
        if (!future.get()) {
            if (once) {
                return null;
            }
            throw new TimeoutException("the wait ended before the lock was granted");
        }
        GUARDS.put(number, held);
        return Map.of("guard", number, "token", 0);
    }

    private static Object connect(JsonObject request) {
        defaults = request.getAsJsonObject("options");
        Config config = new Config();
        config.setLockWatchdogTimeout(defaults.get("ttl").getAsLong());
        config.setThreads(2).setNettyThreads(2);
        config.useSingleServer().setAddress(request.get("url").getAsString())
            .setConnectionMinimumIdleSize(1).setSubscriptionConnectionMinimumIdleSize(1);
        client = Redisson.create(config);
        return null;
    }

    private static Object answer(JsonObject request) throws Exception {
        return switch (request.get("op").getAsString()) {
            case "ping" -> Map.of("actor", "redisson", "pid", ProcessHandle.current().pid());
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
