package io.github.fencelock.kotlin

import io.github.fencelock.InvalidArgumentException
import io.github.fencelock.LockLostException
import io.github.fencelock.LockTimeoutException
import io.github.fencelock.Released
import io.github.fencelock.Stores
import java.io.IOException
import kotlin.time.Duration
import kotlin.time.Duration.Companion.milliseconds
import kotlin.time.Duration.Companion.seconds
import kotlinx.coroutines.CancellationException
import kotlinx.coroutines.CoroutineStart
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.TimeoutCancellationException
import kotlinx.coroutines.async
import kotlinx.coroutines.awaitCancellation
import kotlinx.coroutines.joinAll
import kotlinx.coroutines.launch
import kotlinx.coroutines.runBlocking
import kotlinx.coroutines.withContext
import kotlinx.coroutines.withTimeout
import kotlinx.coroutines.yield
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertFalse
import org.junit.jupiter.api.Assertions.assertNull
import org.junit.jupiter.api.Assertions.assertSame
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.assertThrows
import org.junit.jupiter.params.ParameterizedTest
import org.junit.jupiter.params.provider.MethodSource

/** Locks of coroutines. */
class LockTest {
    @ParameterizedTest
    @MethodSource("io.github.fencelock.Stores#all")
    fun `what is done under a lock is exact`(url: String) = runBlocking(Dispatchers.Default) {
        val name = Stores.name()
        var count = 0
        Fencelock.connect(url).use { client ->
            List(20) {
                launch {
                    repeat(10) {
                        client.lock(name).withLock {
                            val seen = count
                            yield()
                            count = seen + 1
                        }
                    }
                }
            }.joinAll()
            assertEquals(200, count)
            client.isAtRest(name)
        }
    }

    @Test
    fun `a loss cancels the body and is thrown`() = runBlocking {
        Fencelock.connect(Stores.redis().url()).use { client ->
            val lock = client.lock(Stores.name()).ttl(200.milliseconds).renew(false)
            var ended = false
            val lost = assertThrows<LockLostException> {
                runBlocking {
                    lock.withLock {
                        try {
                            awaitCancellation()
                        } finally {
                            ended = true
                        }
                    }
                }
            }
            assertTrue(ended)
            assertTrue(lost.message!!.contains("no longer held"), lost.message)
            client.isAtRest(lock.name)
        }
    }

    /** Coroutines throw copies of others, to show more of the stack. */
    private class Mine(val number: Int) : IOException("mine")

    @Test
    fun `what the body throws is never hidden by a loss`() = runBlocking {
        Fencelock.connect(Stores.redis().url()).use { client ->
            val lock = client.lock(Stores.name()).ttl(100.milliseconds).renew(false)
            val mine = Mine(1)
            val seen = assertThrows<IOException> {
                runBlocking {
                    lock.withLock<Unit> {
                        try {
                            awaitCancellation()
                        } finally {
                            throw mine
                        }
                    }
                }
            }
            assertSame(mine, seen)
            assertEquals(listOf(LockLostException::class), seen.suppressed.map { it::class })
            client.isAtRest(lock.name)
        }
    }

    @Test
    fun `a body that ends after the loss did not succeed`() = runBlocking {
        Fencelock.connect(Stores.redis().url()).use { client ->
            val lock = client.lock(Stores.name()).ttl(100.milliseconds).renew(false)
            assertThrows<LockLostException> {
                runBlocking { lock.withLock { guard -> while (guard.isHeld) Thread.onSpinWait() } }
            }
            client.isAtRest(lock.name)
        }
    }

    @Test
    fun `cancelled from outside it is a cancellation`() = runBlocking {
        Fencelock.connect(Stores.redis().url()).use { client ->
            val lock = client.lock(Stores.name())
            assertThrows<TimeoutCancellationException> {
                runBlocking { withTimeout(50.milliseconds) { lock.withLock { awaitCancellation() } } }
            }
            val body = async(start = CoroutineStart.UNDISPATCHED) { lock.withLock { awaitCancellation() } }
            while (client.load().guards() == 0L) yield()
            body.cancel()
            assertThrows<CancellationException> { runBlocking { body.await() } }
            client.isAtRest(lock.name)
        }
    }

    @Test
    fun `waits end, tries answer null, mistakes are told`() = runBlocking {
        Fencelock.connect(Stores.redis().url(), ClientOptions().wait(Duration.INFINITE)).use { client ->
            val lock = client.lock(Stores.name())
            val guard = lock.acquire(Duration.INFINITE)
            assertThrows<LockTimeoutException> { runBlocking { lock.acquire(20.milliseconds) } }
            assertNull(lock.tryAcquire())
            assertThrows<InvalidArgumentException> { runBlocking { lock.option("tll", 5.seconds).acquire() } }
            assertEquals("kotlin", lock.inspect().holders()[0].info()["language"])
            guard.extend(40.seconds)
            assertTrue(guard.remaining > 35.seconds)
            assertEquals(Released.RELEASED, guard.release())
            assertFalse(guard.isHeld)
        }
    }

    @Test
    fun `what resumes unconfined runs on no thread of the core`() = runBlocking {
        Fencelock.connect("memory:unconfined").use { client ->
            val guard = client.lock("x").acquire()
            val thread = async(Dispatchers.Unconfined) {
                client.lock("x").withLock { Thread.currentThread().name }
            }
            withContext(Dispatchers.Default) { guard.release() }
            assertTrue(thread.await().startsWith("fencelock-callbacks"), thread.await())
        }
    }
}
