import io.github.fencelock.jna.Client
import io.github.fencelock.jna.FencelockException
import io.github.fencelock.jna.Released
import io.github.fencelock.jna.Setting
import java.time.Duration
import kotlinx.coroutines.runBlocking
import kotlinx.coroutines.withTimeoutOrNull

/** A first lock, its loss of a race, a wait that is cancelled. */
fun main() = runBlocking {
    val client = Client.connect("memory:", mapOf("ttl" to Setting.Time(Duration.ofSeconds(20))), "kotlin")
    val guard = client.lock("orders:42").acquire()
    check(guard.isHeld() && guard.token() > 0u)
    check(client.lock("orders:42").tryAcquire() == null)
    val late = runCatching { client.lock("orders:42").acquire(Duration.ofMillis(50)) }
    check(late.exceptionOrNull() is FencelockException.Timeout)
    check(withTimeoutOrNull(50) { client.lock("orders:42").acquire() } == null)
    check(guard.release() == Released.RELEASED)
    check(client.lock("orders:42").acquire().release() == Released.RELEASED)
    client.disconnect()
    println("a first lock over JNA")
}
