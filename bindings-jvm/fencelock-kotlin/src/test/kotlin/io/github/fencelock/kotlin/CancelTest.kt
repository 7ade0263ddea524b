package io.github.fencelock.kotlin

import io.github.fencelock.Client
import io.github.fencelock.Heard
import io.github.fencelock.Job
import io.github.fencelock.Released
import io.github.fencelock.Run
import io.github.fencelock.Stores
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test
import org.junit.jupiter.params.ParameterizedTest
import org.junit.jupiter.params.provider.MethodSource
import java.time.Instant
import java.util.concurrent.atomic.AtomicInteger
import java.util.concurrent.atomic.AtomicIntegerArray
import kotlin.coroutines.CoroutineContext
import kotlin.random.Random
import kotlin.time.Duration.Companion.microseconds
import kotlin.time.Duration.Companion.milliseconds
import kotlin.time.Duration.Companion.minutes
import kotlin.time.Duration.Companion.seconds
import kotlinx.coroutines.CancellationException
import kotlinx.coroutines.CopyableThreadContextElement
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.CoroutineStart
import kotlinx.coroutines.DelicateCoroutinesApi
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.ExperimentalCoroutinesApi
import kotlinx.coroutines.coroutineScope
import kotlinx.coroutines.delay
import kotlinx.coroutines.flow.take
import kotlinx.coroutines.launch
import kotlinx.coroutines.runBlocking
import kotlinx.coroutines.withTimeout
import kotlinx.coroutines.withTimeoutOrNull
import kotlinx.coroutines.yield

/**
 * Coroutines that are cancelled at random moments leave nothing, and know it. 500 a store; 5,000 with `FENCELOCK_FULL`;
 * `FENCELOCK_SEED` repeats the choices of a run.
 */
class CancelTest {
    private companion object {
        val FULL = System.getenv("FENCELOCK_FULL") != null
        const val LOCKS = 4

        /** A hold that is left does not end before the search for it gives up. */
        val TTL = 60.seconds

        /** The shortest one of a job, so that its next run is soon due. */
        val PERIOD = 10.milliseconds

        /** The operations after which there is nothing more to do once they return. */
        val BODILESS = setOf(
            Operation.WAIT, Operation.TRY, Operation.TRY_ALL, Operation.TRY_LEAD, Operation.OBSERVE, Operation.END,
            Operation.RELEASE, Operation.RESIGN, Operation.UPDATE, Operation.LOOK,
        )
    }

    /** The operations in which one coroutine after another is cancelled. */
    private enum class Operation {
        LOCK, WAIT, TRY, ALL, TRY_ALL, LEAD, TRY_LEAD, OBSERVE, RUN, END, READ, WRITE, PERMITS, SCOPE,
        EXTEND, LOST, RELEASE, RESIGN, UPDATE, LOOK, CONNECT,
    }

    /** The observations of one of them, and whether its cancel has been [delivered]. */
    private class Seen(private val pause: Int) {
        @Volatile var delivered = false
        @Volatile var begun = false
        @Volatile var entered = false
        @Volatile var completed = false
        @Volatile var cancelled = false

        /** It went on after its cancel, as if there had been none. */
        @Volatile var deaf = false

        suspend fun body(work: suspend () -> Unit = {}) {
            val late = delivered
            entered = true
            work()
            // Both of them see a cancel that is there.
            if (pause == 0) yield() else delay(pause.microseconds)
            deaf = late
            completed = true
        }

        /** Nobody may take it for well done if it was not, nor may it do anything once it was cancelled. */
        val swallowed get() = deaf || begun && !cancelled && !completed
    }

    private class Storm(val url: String, val one: Client, val other: Client) {
        val prefix = Stores.name() + "/"
        val cuts = AtomicIntegerArray(Operation.entries.size)
        val cut = AtomicInteger()
        val begun = AtomicInteger()
        val swallowed = AtomicInteger()

        /** Cuts are wanted yet, in all or of some operation, and it is not for nothing that they were. */
        fun goesOn(enough: Int): Boolean {
            val few = cut.get() < enough || Operation.entries.any { cuts[it.ordinal] < enough / 100 }
            return few && begun.incrementAndGet() <= 20 * enough
        }

        fun names(way: String) = List(LOCKS) { "$prefix$it$way" }
    }

    private suspend fun Storm.perform(operation: Operation, client: Client, name: String, run: Job, seen: Seen) {
        val lock = client.lock(name).ttl(TTL)
        val all = client.all(name, "${prefix}1-more").ttl(TTL)
        val election = client.election(name).ttl(TTL).observe(10.milliseconds)
        when (operation) {
            Operation.LOCK -> lock.withLockSuspending { seen.body() }
            Operation.WAIT -> lock.awaitAcquire(1.minutes).awaitRelease()
            Operation.TRY -> lock.awaitTryAcquire()?.awaitRelease()
            Operation.ALL -> all.withLockSuspending { seen.body() }
            Operation.TRY_ALL -> all.awaitTryAcquire()?.awaitRelease()
            Operation.LEAD -> election.whileLeading { seen.body() }
            Operation.TRY_LEAD -> election.awaitTryCampaign()?.awaitRelease()
            Operation.OBSERVE -> election.leaderFlow().take(3).collect {}
            Operation.RUN -> assertTrue(run.withRunSuspending { seen.body() })
            Operation.END -> (run.awaitStart() as Run).let { started ->
                seen.entered = true
                if (name < "${prefix}2") started.awaitSucceed() else started.awaitFail()
            }
            Operation.READ -> client.readLock("$name-read").ttl(TTL).withLockSuspending { seen.body() }
            Operation.WRITE -> client.writeLock("$name-read").ttl(TTL).withLockSuspending { seen.body() }
            Operation.PERMITS -> client.semaphore("$name-permits", 2).ttl(TTL).withLockSuspending { seen.body() }
            Operation.SCOPE -> client.reentrant(name).ttl(TTL).run { withLockSuspending { withLockSuspending { seen.body() } } }
            Operation.EXTEND -> lock.withLockSuspending { seen.body { it.awaitExtend(TTL * 2) } }
            Operation.LOST -> lock.withLockSuspending { seen.body { withTimeoutOrNull(1.milliseconds) { it.awaitLost() } } }
            Operation.RELEASE -> lock.awaitAcquire().awaitRelease()
            Operation.RESIGN -> election.awaitCampaign().awaitRelease()
            Operation.UPDATE -> client.version("$name-value").awaitUpdate { 1L }
            Operation.LOOK -> { lock.awaitInspect(); election.awaitLeader(); client.awaitNames(prefix) }
            Operation.CONNECT -> awaitConnect(url).useSuspending { it.lock(name).ttl(TTL).withLockSuspending { seen.body() } }
        }
        if (operation in BODILESS) seen.completed = true
    }

    /** The run of this instant is there for whoever asks, before the lease of one that was left could have ended. */
    private suspend fun Job.runs() = withTimeout(20.seconds) {
        var run = awaitStart()
        while (run !is Run) run = awaitStart()
        assertEquals(Released.RELEASED, run.awaitSucceed())
    }

    private suspend fun CoroutineScope.sail(storm: Storm, number: Int, dice: Random, enough: Int) {
        val runs = "${storm.prefix}job-$number"
        var instant = Instant.ofEpochSecond(1_000_000)
        while (storm.goesOn(enough)) {
            val client = if (dice.nextBoolean()) storm.one else storm.other
            val (operation, name) = Operation.entries.random(dice) to storm.names("").random(dice)
            fun run(later: Long) = client.job(runs, PERIOD).at(instant.plusSeconds(later)).ttl(TTL)
            val seen = Seen(dice.nextInt(300))
            instant = instant.plusSeconds(120)
            // No two starts come within half a period.
            if (operation == Operation.RUN || operation == Operation.END) delay(PERIOD / 2)
            val job = launch(if (dice.nextBoolean()) Dispatchers.Default else Dispatchers.Unconfined) {
                seen.begun = true
                try {
                    storm.perform(operation, client, name, run(0), seen)
                } catch (cancellation: CancellationException) {
                    seen.cancelled = true
                    throw cancellation
                }
            }
            when (dice.nextInt(3)) {
                0 -> {}
                1 -> yield()
                else -> delay(dice.nextInt(3_000).microseconds)
            }
            job.cancel()
            seen.delivered = true
            job.join()
            if (seen.swallowed) storm.swallowed.incrementAndGet()
            if (seen.cancelled) {
                storm.cut.incrementAndGet()
                storm.cuts.incrementAndGet(operation.ordinal)
                // A start that was cancelled is as if nobody had asked; an end is told all the same, and the next one starts.
                if (operation == Operation.RUN && !seen.entered) run(0).runs()
                if (operation == Operation.END) run(if (seen.entered) 60 else 0).runs()
            }
        }
    }

    @ParameterizedTest
    @MethodSource("io.github.fencelock.Stores#all")
    fun `cancelled coroutines leave nothing`(url: String) = runBlocking(Dispatchers.Default) {
        val seed = System.getenv("FENCELOCK_SEED")?.toLong() ?: System.nanoTime()
        val enough = if (FULL) 5_000 else 500
        val before = Stores.connections(url)
        val heard = Heard()
        val storm = Storm(url, awaitConnect(url), awaitConnect(url))
        coroutineScope { repeat(8) { number -> launch { sail(storm, number, Random(seed + number), enough) } } }
        println("FENCELOCK_SEED=$seed ${url.substringBefore(':')}: cut short ${Operation.entries} ${storm.cuts}")
        assertEquals(0, storm.swallowed.get(), "a cancelled body was taken for one that had come to its end")
        Operation.entries.forEach { assertTrue(storm.cuts[it.ordinal] >= enough / 100, "${storm.cuts}") }
        val names = listOf("", "-more", "-read", "-permits").flatMap(storm::names)
        for (client in listOf(storm.one, storm.other)) client.isAtRest(*names.toTypedArray())
        Stores.nothingIsLeft(url, storm.prefix)
        heard.close()
        val complaints = heard.messages().filter { "collected" in it }
        assertEquals(emptyList<String>(), complaints, "nothing was left to the collector of garbage")
        for (client in listOf(storm.one, storm.other)) client.awaitClose()
        withTimeout(20.seconds) { while (Stores.connections(url) > before) yield() }
    }

    /** Cancels when the coroutine makes a child that watches for a loss: between the grant and the body. */
    @OptIn(DelicateCoroutinesApi::class, ExperimentalCoroutinesApi::class)
    private class Late(val cancel: () -> Unit) : CopyableThreadContextElement<Unit> {
        companion object Key : CoroutineContext.Key<Late>

        override val key get() = Key

        override fun copyForChild(): Late {
            cancel()
            return this
        }

        override fun mergeForChild(overwritingElement: CoroutineContext.Element): CoroutineContext = this
        override fun updateThreadContext(context: CoroutineContext) = Unit
        override fun restoreThreadContext(context: CoroutineContext, oldState: Unit) = Unit
    }

    @Test
    fun `a body does not begin once it is cancelled`() = runBlocking {
        awaitConnect("memory:late").useSuspending { client ->
            for (ask in listOf<suspend (suspend () -> Unit) -> Unit>(
                { body -> client.lock("x").withLockSuspending { body() } },
                { body -> client.election("x").whileLeading { body() } },
                { body -> client.job("x", 1.minutes).withRunSuspending { body() } },
            )) {
                lateinit var job: kotlinx.coroutines.Job
                var (asked, entered) = false to false
                val late = Late { if (asked) job.cancel() }
                job = launch(late, CoroutineStart.LAZY) {
                    asked = true
                    ask { entered = true }
                }
                job.join()
                assertTrue(job.isCancelled && !entered)
                // It is as if nobody had asked: a job's run is still due.
                client.isAtRest("x")
                ask { entered = true }
                assertTrue(entered)
            }
        }
    }
}
