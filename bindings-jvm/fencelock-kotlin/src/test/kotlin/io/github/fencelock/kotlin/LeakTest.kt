package io.github.fencelock.kotlin

import io.github.fencelock.Client
import io.github.fencelock.Guard
import io.github.fencelock.Heard
import io.github.fencelock.Stores
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertNull
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test
import kotlin.time.Duration.Companion.seconds
import kotlinx.coroutines.CompletableDeferred
import kotlinx.coroutines.DelicateCoroutinesApi
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.GlobalScope
import kotlinx.coroutines.launch
import kotlinx.coroutines.runBlocking
import kotlinx.coroutines.withTimeout
import kotlinx.coroutines.yield

/** Handles that nobody gives back. */
class LeakTest {
    private val name = Stores.name()

    // In functions of their own, so that no frame refers to what they forget.
    private fun forgetGuard(client: Client) = runBlocking<Unit> { client.lock(name).awaitAcquire() }

    private fun forgetClient() = runBlocking<Unit> { awaitConnect(Stores.redis().url()).lock(name).awaitAcquire() }

    private suspend fun collect(happened: suspend () -> Boolean) = withTimeout(20.seconds) {
        while (!happened()) {
            System.gc()
            yield()
        }
    }

    @Test
    fun `a forgotten guard is released and complained about once`() = runBlocking {
        Heard().use { heard ->
            awaitConnect(Stores.redis().url()).useSuspending { client ->
                forgetGuard(client)
                collect { client.lock(name).awaitInspect().holders().isEmpty() }
                client.isAtRest(name)
                client.lock(name).withLockSuspending { }
                System.gc()
                assertEquals(1, heard.messages().count { "`$name`" in it }, "${heard.messages()}")
            }
        }
    }

    private suspend fun useOnce(client: Client, name: String, use: suspend (Guard) -> Unit) = use(client.lock(name).awaitAcquire())

    @Test
    fun `U03 - no collection ends a hold in use`() = runBlocking {
        val ways = mapOf<String, suspend (Guard) -> Unit>(
            "name" to { it.name() },
            "token" to { it.token() },
            "isHeld" to { it.isHeld },
            "remaining" to { it.remaining() },
            "check" to { it.check() },
            "extend" to { it.awaitExtend(60.seconds) },
            "onLost" to { it.onLost { } },
        )
        val holds = if (System.getenv("FENCELOCK_FULL") == null) 100 else 1_000
        Heard().use { heard ->
            awaitConnect("memory:").useSuspending { client ->
                for ((way, use) in ways) repeat(holds) { useOnce(client, "$way$it", use) }
                // Nothing but the library refers to these coroutines.
                @OptIn(DelicateCoroutinesApi::class)
                repeat(holds) {
                    val begun = CompletableDeferred<Unit>()
                    GlobalScope.launch(Dispatchers.Unconfined) {
                        val guard = client.lock("lost$it").awaitAcquire()
                        begun.complete(Unit)
                        guard.awaitLost()
                    }
                    begun.await()
                }
                forgetGuard(client)
                // The collection that takes this one would have taken the others.
                collect { client.lock(name).awaitInspect().holders().isEmpty() }
                for (way in ways.keys + "lost") repeat(holds) { assertNull(client.lock("$way$it").awaitTryAcquire(), "$way$it") }
                assertEquals(1, heard.messages().size, "${heard.messages()}")
            }
        }
    }

    @Test
    fun `U03 - a coroutine that waits for the loss alone is told of it`() = runBlocking {
        Heard().use { heard ->
            awaitConnect("memory:").useSuspending { client ->
                val told = CompletableDeferred<Unit>()
                @OptIn(DelicateCoroutinesApi::class)
                GlobalScope.launch(Dispatchers.Unconfined) {
                    client.lock(name).ttl(1.seconds).renew(false).awaitAcquire().awaitLost()
                    told.complete(Unit)
                }
                collect { told.isCompleted }
                System.gc()
                assertTrue(heard.messages().none { "collected" in it }, "${heard.messages()}")
            }
        }
    }

    @Test
    fun `a forgotten client gives everything back and is complained about once`() = runBlocking {
        Heard().use { heard ->
            awaitConnect(Stores.redis().url()).useSuspending { witness ->
                forgetClient()
                collect { witness.lock(name).awaitInspect().holders().isEmpty() }
                collect { heard.messages().any { "client" in it } }
                assertEquals(1, heard.messages().count { "client" in it }, "${heard.messages()}")
            }
        }
    }
}
