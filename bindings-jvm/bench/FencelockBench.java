import io.github.fencelock.Client;
import io.github.fencelock.Fencelock;
import io.github.fencelock.Guard;
import java.util.concurrent.CompletionStage;

/** The Java package on the bench's courses, which stand in peers/java/Course.java. */
public final class FencelockBench implements Course.Contestant {
    private final Client client;

    private FencelockBench(String url) {
        client = Fencelock.connect(url);
    }

    @Override
    public Course.Release acquire(String key) throws InterruptedException {
        return client.lock(key).acquire()::close;
    }

    @Override
    public CompletionStage<?> pair(String key) {
        return client.lock(key).acquireAsync().thenCompose(Guard::releaseAsync);
    }

    /** Runs the course that the first word names. */
    public static void main(String[] words) throws Exception {
        Course.run(new FencelockBench(Course.url(words)), words, 0);
    }
}
