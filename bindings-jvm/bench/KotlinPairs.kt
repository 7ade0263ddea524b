import io.github.fencelock.Client
import io.github.fencelock.Guard
import io.github.fencelock.kotlin.awaitAcquire
import io.github.fencelock.kotlin.awaitConnect
import io.github.fencelock.kotlin.awaitRelease
import java.util.concurrent.CompletionStage
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.future.future
import kotlinx.coroutines.runBlocking

/** The Kotlin package, for the courses in Java. */
public class KotlinPairs(url: String) {
    private val scope = CoroutineScope(Dispatchers.Default)
    private val client: Client = runBlocking { awaitConnect(url) }

    /** Waits for the lock in this thread. */
    public fun acquire(key: String): Guard = runBlocking { client.lock(key).awaitAcquire() }

    /** Gives it back in this thread. */
    public fun release(guard: Guard) {
        runBlocking { guard.awaitRelease() }
    }

    /** Acquire and release in a coroutine. */
    public fun pair(key: String): CompletionStage<*> = scope.future { client.lock(key).awaitAcquire().awaitRelease() }
}
