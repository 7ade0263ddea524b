package io.github.fencelock.kotlin

import io.github.fencelock.InvalidArgumentException
import io.github.fencelock.Load
import io.github.fencelock.LockLostException
import io.github.fencelock.LockTimeoutException
import io.github.fencelock.Released
import io.github.fencelock.Stores
import java.io.IOException
import kotlin.random.Random
import kotlin.time.Duration
import kotlin.time.Duration.Companion.microseconds
import kotlin.time.Duration.Companion.milliseconds
import kotlin.time.Duration.Companion.seconds
import kotlinx.coroutines.CancellationException
import kotlinx.coroutines.CoroutineStart
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.TimeoutCancellationException
import kotlinx.coroutines.async
import kotlinx.coroutines.awaitCancellation
import kotlinx.coroutines.coroutineScope
import kotlinx.coroutines.delay
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
    /** Nothing runs, nothing is held, nobody waits. */
    private suspend fun Client.isAtRest(vararg locks: String) = withTimeout(20.seconds) {
        while (load() != Load(0, 0, 0, 0, 0)) yield()
        for (name in locks) {
            do {
                val state = lock(name).inspect()
                yield()
            } while (state.holders().isNotEmpty() || state.waiters().isNotEmpty())
        }
    }

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

    @Test
    fun `what the body throws is never hidden`() = runBlocking {
        Fencelock.connect(Stores.redis().url()).use { client ->
            val mine = IOException("mine")
            val seen = assertThrows<IOException> {
                runBlocking { client.lock(Stores.name()).withLock<Unit> { throw mine } }
            }
            assertSame(mine.message, seen.message)
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

    /** 500 cancels a store; 5,000 with `FENCELOCK_FULL`. `FENCELOCK_SEED` repeats the choices of a run. */
    @ParameterizedTest
    @MethodSource("io.github.fencelock.Stores#all")
    fun `cancelled coroutines leave nothing`(url: String) = runBlocking(Dispatchers.Default) {
        val seed = System.getenv("FENCELOCK_SEED")?.toLong() ?: System.nanoTime()
        println("FENCELOCK_SEED=$seed")
        val enough = if (System.getenv("FENCELOCK_FULL") == null) 500 else 5_000
        val names = List(4) { Stores.name() }
        val (one, other) = List(2) { Fencelock.connect(url) }
        val cut = java.util.concurrent.atomic.AtomicInteger()
        coroutineScope {
            repeat(8) { number ->
                launch {
                    val dice = Random(seed + number)
                    while (cut.get() < enough) {
                        val lock = (if (dice.nextBoolean()) one else other).lock(names.random(dice)).ttl(20.seconds)
                        val job = launch(if (dice.nextBoolean()) Dispatchers.Default else Dispatchers.Unconfined) {
                            try {
                                lock.withLock { delay(dice.nextInt(300).microseconds) }
                            } catch (cancelled: CancellationException) {
                                cut.incrementAndGet()
                                throw cancelled
                            }
                        }
                        delay(dice.nextInt(3_000).microseconds)
                        job.cancel()
                        job.join()
                    }
                }
            }
        }
        for (client in listOf(one, other)) {
            client.isAtRest(*names.toTypedArray())
            client.close()
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
