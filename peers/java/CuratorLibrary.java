import com.google.gson.JsonObject;
import java.net.URI;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessLock;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;
import org.apache.curator.retry.RetryOneTime;

/** Curator's recipes. Its locks belong to threads, so every guard keeps one. */
final class CuratorLibrary implements Library {
    private final CuratorFramework client;
    private final String root;

    CuratorLibrary(String url, JsonObject options) throws Exception {
        URI address = URI.create(url);
        root = address.getPath();
        client = CuratorFrameworkFactory.builder()
            .connectString(address.getHost() + ":" + address.getPort())
            .sessionTimeoutMs(options.get("ttl").getAsInt())
            .retryPolicy(new RetryOneTime(100))
            .build();
        client.start();
        client.blockUntilConnected();
    }

    @Override
    public Held take(String name, long wait, JsonObject options) throws Exception {
        String path = root + "/" + name;
        String kind = options.has("kind") ? options.get("kind").getAsString() : "exclusive";
        if (kind.equals("permit")) {
            var semaphore = new InterProcessSemaphoreV2(client, path, options.get("permits").getAsInt());
            Lease lease = semaphore.acquire(wait, TimeUnit.MILLISECONDS);
            return lease == null ? null : () -> {
                semaphore.returnLease(lease);
                return "released";
            };
        }
        InterProcessLock lock = lock(kind, path);
        ExecutorService thread = Executors.newSingleThreadExecutor();
        if (!thread.submit(() -> lock.acquire(wait, TimeUnit.MILLISECONDS)).get()) {
            thread.shutdown();
            return null;
        }
        Callable<String> release = () -> {
            lock.release();
            return "released";
        };
        return () -> {
            try {
                return thread.submit(release).get();
            } finally {
                thread.shutdown();
            }
        };
    }

    private InterProcessLock lock(String kind, String path) {
        return switch (kind) {
            case "exclusive" -> new InterProcessMutex(client, path);
            case "read" -> new InterProcessReadWriteLock(client, path).readLock();
            case "write" -> new InterProcessReadWriteLock(client, path).writeLock();
            default -> throw new IllegalArgumentException("Curator has no kind " + kind);
        };
    }
}
