package io.github.fencelock.kotlin

import io.github.fencelock.Released
import io.github.fencelock.Stores
import java.time.Instant
import java.util.concurrent.atomic.AtomicInteger
import java.util.concurrent.atomic.AtomicIntegerArray
import kotlin.random.Random
import kotlin.time.Duration.Companion.microseconds
import kotlin.time.Duration.Companion.minutes
import kotlin.time.Duration.Companion.seconds
import kotlinx.coroutines.CancellationException
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.coroutineScope
import kotlinx.coroutines.delay
import kotlinx.coroutines.launch
import kotlinx.coroutines.runBlocking
import kotlinx.coroutines.withTimeout
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.params.ParameterizedTest
import org.junit.jupiter.params.provider.MethodSource

/**
 * Coroutines that are cancelled at random moments leave nothing, and know it. 500 a store; 5,000 with `FENCELOCK_FULL`;
 * `FENCELOCK_SEED` repeats the choices of a run.
 */
class CancelTest {
    private companion object {
        val FULL = System.getenv("FENCELOCK_FULL") != null
        const val LOCKS = 4
    }

    /** What one coroutine after another is cancelled in. */
    private enum class Operation { LOCK, ALL, LEAD, RUN, READ, UPGRADE, RELEASE }

    /** What is seen of one of them: whether its body has begun, and was cancelled. */
    private class Seen(private val pause: Int) {
        @Volatile var entered = false
        @Volatile var cancelled = false

        suspend fun body(work: suspend () -> Unit = {}) {
            entered = true
            try {
                work()
                delay(pause.microseconds)
            } catch (cancellation: CancellationException) {
                cancelled = true
                throw cancellation
            }
        }
    }

    private suspend fun Client.perform(operation: Operation, name: String, run: Job, seen: Seen) {
        when (operation) {
            Operation.LOCK -> lock(name).ttl(20.seconds).withLock { seen.body() }
            Operation.ALL -> all(name, "$name-more").ttl(20.seconds).withLock { seen.body() }
            Operation.LEAD -> elect(name).ttl(20.seconds).whileLeading { seen.body() }
            Operation.RUN -> run.withRun { seen.body() }
            Operation.READ -> read("$name-read").ttl(20.seconds).withLock { seen.body() }
            Operation.UPGRADE -> upgradeable("$name-read").ttl(20.seconds).withLock { seen.body { it.upgrade() } }
            Operation.RELEASE -> lock(name).ttl(20.seconds).acquire().release()
        }
    }

    /** A start that was cancelled is as if nobody had asked. */
    private suspend fun Job.runsAgain() = withTimeout(20.seconds) {
        var run = start()
        while (run == null) run = start()
        assertEquals(Released.RELEASED, run.succeed())
    }

    private class Storm(val one: Client, val other: Client, val names: List<String>) {
        val cuts = AtomicIntegerArray(Operation.entries.size)
        val cut = AtomicInteger()
        val swallowed = AtomicInteger()
    }

    private suspend fun CoroutineScope.sail(storm: Storm, dice: Random, enough: Int) {
        val runs = Stores.name()
        var instant = Instant.ofEpochSecond(1_000_000)
        while (storm.cut.get() < enough) {
            val client = if (dice.nextBoolean()) storm.one else storm.other
            val (operation, name) = Operation.entries.random(dice) to storm.names.random(dice)
            instant = instant.plusSeconds(60)
            val run = client.job(runs, 1.minutes).at(instant).ttl(20.seconds)
            val seen = Seen(dice.nextInt(300))
            var cancelled = false
            val job = launch(if (dice.nextBoolean()) Dispatchers.Default else Dispatchers.Unconfined) {
                try {
                    client.perform(operation, name, run, seen)
                } catch (cancellation: CancellationException) {
                    cancelled = true
                    throw cancellation
                }
                if (seen.cancelled) storm.swallowed.incrementAndGet()
            }
            delay(dice.nextInt(3_000).microseconds)
            job.cancel()
            job.join()
            if (cancelled) {
                storm.cut.incrementAndGet()
                storm.cuts.incrementAndGet(operation.ordinal)
                if (operation == Operation.RUN && !seen.entered) run.runsAgain()
            }
        }
    }

    @ParameterizedTest
    @MethodSource("io.github.fencelock.Stores#all")
    fun `cancelled coroutines leave nothing`(url: String) = runBlocking(Dispatchers.Default) {
        val seed = System.getenv("FENCELOCK_SEED")?.toLong() ?: System.nanoTime()
        val enough = if (FULL) 5_000 else 500
        val storm = Storm(Fencelock.connect(url), Fencelock.connect(url), List(LOCKS) { Stores.name() })
        coroutineScope { repeat(8) { number -> launch { sail(storm, Random(seed + number), enough) } } }
        println("FENCELOCK_SEED=$seed ${url.substringBefore(':')}: cut short ${storm.cuts}")
        assertEquals(0, storm.swallowed.get(), "a cancelled body was taken for one that had come to its end")
        Operation.entries.forEach { assertTrue(storm.cuts[it.ordinal] >= enough / 100, "${storm.cuts}") }
        val names = storm.names.flatMap { listOf(it, "$it-more", "$it-read") }
        for (client in listOf(storm.one, storm.other)) {
            client.isAtRest(*names.toTypedArray())
            client.close()
        }
    }
}
