import java.util.concurrent.CompletionStage;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.retry.RetryOneTime;

/** Curator's mutex, which belongs to the thread that has it. */
final class CuratorContestant implements Course.Contestant {
    private final CuratorFramework client;

    CuratorContestant(String server) throws Exception {
        client = CuratorFrameworkFactory.newClient(server, 30_000, 15_000, new RetryOneTime(100));
        client.start();
        client.blockUntilConnected();
    }

    @Override
    public Course.Release acquire(String key) throws Exception {
        InterProcessMutex mutex = new InterProcessMutex(client, "/" + key);
        mutex.acquire();
        return mutex::release;
    }

    @Override
    public CompletionStage<?> pair(String key) {
        throw new UnsupportedOperationException("Curator has no locks without threads");
    }
}
