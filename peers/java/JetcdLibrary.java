import com.google.gson.JsonObject;
import io.etcd.jetcd.ByteSequence;
import io.etcd.jetcd.Client;
import io.etcd.jetcd.lease.LeaseKeepAliveResponse;
import io.etcd.jetcd.lock.LockResponse;
import io.etcd.jetcd.support.CloseableClient;
import io.grpc.stub.StreamObserver;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/** jetcd, whose locks are those of the server's lock service. Each lock has a lease of its own, which is kept alive. */
final class JetcdLibrary implements Library {
    /** A lock service that is only asked cannot be tried: who does not wait asks for so long. */
    private static final long TRY = 1000;

    private final Client client;
    private final String prefix;
    private final long seconds;

    JetcdLibrary(String url, JsonObject options) {
        URI address = URI.create(url);
        prefix = address.getPath().substring(1);
        seconds = options.get("ttl").getAsLong() / 1000;
        client = Client.builder().endpoints("http://" + address.getHost() + ":" + address.getPort()).build();
    }

    @Override
    public Held take(String name, long wait, JsonObject options) throws Exception {
        long lease = client.getLeaseClient().grant(seconds).get().getID();
        CloseableClient alive = client.getLeaseClient().keepAlive(lease, new Deaf());
        ByteSequence key = ByteSequence.from(prefix + "/" + name, StandardCharsets.UTF_8);
        CompletableFuture<LockResponse> asked = client.getLockClient().lock(key, lease);
        try {
            ByteSequence held = asked.get(Math.max(wait, TRY), TimeUnit.MILLISECONDS).getKey();
            return () -> {
                client.getLockClient().unlock(held).get();
                end(alive, lease);
                return "released";
            };
        } catch (TimeoutException late) {
            asked.cancel(true);
            end(alive, lease);
            return null;
        }
    }

    private void end(CloseableClient alive, long lease) throws Exception {
        alive.close();
        client.getLeaseClient().revoke(lease).get();
    }

    /** Nobody listens to the heartbeats. */
    private static final class Deaf implements StreamObserver<LeaseKeepAliveResponse> {
        @Override
        public void onNext(LeaseKeepAliveResponse alive) {}

        @Override
        public void onError(Throwable lost) {}

        @Override
        public void onCompleted() {}
    }
}
