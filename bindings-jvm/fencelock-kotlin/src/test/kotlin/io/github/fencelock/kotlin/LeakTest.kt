package io.github.fencelock.kotlin

import io.github.fencelock.Heard
import io.github.fencelock.Stores
import kotlin.time.Duration.Companion.seconds
import kotlinx.coroutines.runBlocking
import kotlinx.coroutines.withTimeout
import kotlinx.coroutines.yield
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Test

/** Handles that nobody gives back. */
class LeakTest {
    private val name = Stores.name()

    // In functions of their own, so that no frame refers to what they forget.
    private fun forgetGuard(client: Client) = runBlocking { client.lock(name).acquire().check() }

    private fun forgetClient() = runBlocking { Fencelock.connect(Stores.redis().url()).lock(name).acquire().check() }

    private suspend fun collect(happened: suspend () -> Boolean) = withTimeout(20.seconds) {
        while (!happened()) {
            System.gc()
            yield()
        }
    }

    @Test
    fun `a forgotten guard is released and complained about once`() = runBlocking {
        Heard().use { heard ->
            Fencelock.connect(Stores.redis().url()).use { client ->
                forgetGuard(client)
                collect { client.lock(name).inspect().holders().isEmpty() }
                client.isAtRest(name)
                client.lock(name).withLock { }
                System.gc()
                assertEquals(1, heard.messages().count { "`$name`" in it }, "${heard.messages()}")
            }
        }
    }

    @Test
    fun `a forgotten client gives everything back and is complained about once`() = runBlocking {
        Heard().use { heard ->
            Fencelock.connect(Stores.redis().url()).use { witness ->
                forgetClient()
                collect { witness.lock(name).inspect().holders().isEmpty() }
                collect { heard.messages().any { "client" in it } }
                assertEquals(1, heard.messages().count { "client" in it }, "${heard.messages()}")
            }
        }
    }
}
