package io.github.fencelock.kotlin

import io.github.fencelock.Client
import io.github.fencelock.ClientOptions
import io.github.fencelock.Guard
import io.github.fencelock.InvalidArgumentException
import io.github.fencelock.LockLostException
import io.github.fencelock.LockTimeoutException
import io.github.fencelock.Released
import io.github.fencelock.Standstill
import io.github.fencelock.Stores
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertFalse
import org.junit.jupiter.api.Assertions.assertNull
import org.junit.jupiter.api.Assertions.assertSame
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Tag
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.assertThrows
import org.junit.jupiter.params.ParameterizedTest
import org.junit.jupiter.params.provider.MethodSource
import java.io.IOException
import kotlin.time.Duration
import kotlin.time.Duration.Companion.days
import kotlin.time.Duration.Companion.milliseconds
import kotlin.time.Duration.Companion.seconds
import kotlin.time.toJavaDuration
import kotlinx.coroutines.CancellationException
import kotlinx.coroutines.CoroutineStart
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.TimeoutCancellationException
import kotlinx.coroutines.async
import kotlinx.coroutines.awaitCancellation
import kotlinx.coroutines.joinAll
import kotlinx.coroutines.launch
import kotlinx.coroutines.runBlocking
import kotlinx.coroutines.supervisorScope
import kotlinx.coroutines.withContext
import kotlinx.coroutines.withTimeout
import kotlinx.coroutines.yield

/** Locks of coroutines. */
class LockTest {
    @ParameterizedTest
    @MethodSource("io.github.fencelock.Stores#all")
    fun `what is done under a lock is exact`(url: String) = runBlocking(Dispatchers.Default) {
        val name = Stores.name()
        var count = 0
        awaitConnect(url).useSuspending { client ->
            List(20) {
                launch {
                    repeat(10) {
                        client.lock(name).withLockSuspending {
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
        awaitConnect(Stores.redis().url()).useSuspending { client ->
            val lock = client.lock(Stores.name()).ttl(1000.milliseconds).renew(false)
            var ended = false
            val lost = assertThrows<LockLostException> {
                runBlocking {
                    lock.withLockSuspending {
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
            client.isAtRest(lock.name())
        }
    }

    /** Coroutines throw copies of others, to show more of the stack. */
    private class Mine(val number: Int) : IOException("mine")

    @Test
    fun `what the body throws is never hidden by a loss`() = runBlocking {
        awaitConnect(Stores.redis().url()).useSuspending { client ->
            val lock = client.lock(Stores.name()).ttl(1000.milliseconds).renew(false)
            val mine = Mine(1)
            val seen = assertThrows<IOException> {
                runBlocking {
                    lock.withLockSuspending<Unit> {
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
            client.isAtRest(lock.name())
        }
    }

    /** A loss that a body throws, of something else. */
    private suspend fun Client.anotherLoss(): Nothing =
        lock(Stores.name()).ttl(1.seconds).renew(false).withLockSuspending { awaitCancellation() }

    @Tag("full")
    @Test
    fun `what the body throws is never hidden, though it looks like an end by the loss`() = runBlocking {
        awaitConnect(Stores.redis().url()).useSuspending { client ->
            val ways = listOf<suspend (Guard) -> Nothing>(
                { hold ->
                    while (hold.isHeld) Thread.onSpinWait()
                    throw CancellationException("mine")
                },
                { hold ->
                    while (hold.isHeld) Thread.onSpinWait()
                    runBlocking { withTimeout(1.milliseconds) { awaitCancellation() } }
                },
                { hold ->
                    while (hold.isHeld) Thread.onSpinWait()
                    runBlocking { client.anotherLoss() }
                },
            )
            for ((number, way) in ways.withIndex()) {
                for (mode in listOf("lock", "run")) {
                    var mine: Throwable? = null
                    val body: suspend (Guard) -> Unit = { hold ->
                        try {
                            way(hold)
                        } catch (error: Throwable) {
                            mine = error
                            throw error
                        }
                    }
                    val name = Stores.name()
                    val seen = assertThrows<Throwable> {
                        runBlocking {
                            if (mode == "lock") {
                                client.lock(name).ttl(1000.milliseconds).renew(false).withLockSuspending { body(it) }
                            } else {
                                client.job(name, 1.days).ttl(1000.milliseconds).withRunSuspending {
                                    // A run is always renewed.
                                    Stores.redis().forget(name)
                                    body(it)
                                }
                            }
                        }
                    }
                    val what = "$mode, way $number: $seen, $mine"
                    assertTrue(generateSequence(seen) { it.cause }.any { it === mine }, what)
                    assertEquals(listOf(LockLostException::class), mine!!.suppressed.map { it::class }, what)
                }
            }
        }
    }

    @Test
    fun `nothing begins under what is lost when it is heard of`() = runBlocking {
        awaitConnect(Stores.redis().url()).useSuspending { client ->
            var begun = false
            val prefix = "${Stores.name()}/"
            val ways = listOf<suspend (String) -> Unit>(
                { client.lock(it).ttl(1.seconds).renew(false).withLockSuspending { begun = true } },
                { client.lock(it).maxHold(1.seconds).withLockSuspending { begun = true } },
                { client.all(it).ttl(1.seconds).renew(false).withLockSuspending { begun = true } },
                { client.lock(it).ttl(1.seconds).renew(false).awaitAcquire() },
                { client.lock(it).ttl(1.seconds).renew(false).awaitAcquire(10.seconds) },
                { client.readLock(it).ttl(1.seconds).renew(false).awaitTryAcquire() },
                { client.election(it).ttl(1.seconds).whileLeading { begun = true } },
                { client.election(it).ttl(1.seconds).awaitTryCampaign() },
                { client.job(it, 1.days).ttl(1.seconds).withRunSuspending { begun = true } },
                { client.job(it, 1.days).ttl(1.seconds).awaitStart() },
            )
            supervisorScope {
                val asked = Standstill(client, "${prefix}first").use {
                    ways.mapIndexed { number, way -> async(start = CoroutineStart.UNDISPATCHED) { way("$prefix$number") } }
                }
                // The only thread of all that wait stands still until all is lost again.
                while (client.stats().guards() < ways.size) Thread.onSpinWait()
                // Leaders and runs, which are always renewed, because somebody else has deleted them.
                (6..9).forEach { Stores.redis().forget("$prefix$it") }
                Thread.sleep(1_200)
                for ((number, one) in asked.withIndex()) {
                    val ended = runCatching { one.await() }.exceptionOrNull()
                    assertTrue(ended is LockLostException, "way $number ended with $ended")
                }
            }
            assertFalse(begun)
            client.isAtRest(*Array(ways.size) { "$prefix$it" })
        }
    }

    @Test
    fun `a body that ends after the loss did not succeed`() = runBlocking {
        awaitConnect(Stores.redis().url()).useSuspending { client ->
            val lock = client.lock(Stores.name()).ttl(1000.milliseconds).renew(false)
            assertThrows<LockLostException> {
                runBlocking { lock.withLockSuspending { guard -> while (guard.isHeld) Thread.onSpinWait() } }
            }
            client.isAtRest(lock.name())
        }
    }

    @Test
    fun `cancelled from outside it is a cancellation`() = runBlocking {
        awaitConnect(Stores.redis().url()).useSuspending { client ->
            val lock = client.lock(Stores.name())
            assertThrows<TimeoutCancellationException> {
                runBlocking { withTimeout(50.milliseconds) { lock.withLockSuspending { awaitCancellation() } } }
            }
            val body = async(start = CoroutineStart.UNDISPATCHED) { lock.withLockSuspending { awaitCancellation() } }
            while (client.stats().guards() == 0L) yield()
            body.cancel()
            assertThrows<CancellationException> { runBlocking { body.await() } }
            client.isAtRest(lock.name())
        }
    }

    @Test
    fun `waits end, tries answer null, mistakes are told`() = runBlocking {
        awaitConnect(Stores.redis().url(), ClientOptions().waitAtMost(Duration.INFINITE)).useSuspending { client ->
            val lock = client.lock(Stores.name())
            val guard = lock.awaitAcquire(Duration.INFINITE)
            assertThrows<LockTimeoutException> { runBlocking { lock.awaitAcquire(20.milliseconds) } }
            assertNull(lock.awaitTryAcquire())
            assertThrows<InvalidArgumentException> { runBlocking { lock.option("tll", "5s").awaitAcquire() } }
            assertEquals("kotlin", lock.awaitInspect().holders()[0].info()["language"])
            guard.awaitExtend(60.seconds)
            assertTrue(guard.remaining() > 40.seconds.toJavaDuration())
            assertEquals(Released.RELEASED, guard.awaitRelease())
            assertFalse(guard.isHeld)
        }
    }

    @Test
    fun `what resumes unconfined runs on no thread of the core`() = runBlocking {
        awaitConnect("memory:unconfined").useSuspending { client ->
            val guard = client.lock("x").awaitAcquire()
            val thread = async(Dispatchers.Unconfined) {
                client.lock("x").withLockSuspending { Thread.currentThread().name }
            }
            withContext(Dispatchers.Default) { guard.awaitRelease() }
            assertTrue(thread.await().startsWith("fencelock-callbacks"), thread.await())
        }
    }
}
