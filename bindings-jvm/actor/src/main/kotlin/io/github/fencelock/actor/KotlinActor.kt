package io.github.fencelock.actor

import com.google.gson.JsonObject
import io.github.fencelock.Acquirable
import io.github.fencelock.All
import io.github.fencelock.Client
import io.github.fencelock.ClientOptions
import io.github.fencelock.Election
import io.github.fencelock.Guard
import io.github.fencelock.HoldOptions
import io.github.fencelock.Job
import io.github.fencelock.Lock
import io.github.fencelock.Released
import io.github.fencelock.Run
import io.github.fencelock.Scope
import io.github.fencelock.Skipped
import io.github.fencelock.Versioned
import io.github.fencelock.kotlin.*
import java.time.Instant
import kotlin.coroutines.CoroutineContext
import kotlin.system.exitProcess
import kotlin.time.Duration
import kotlin.time.Duration.Companion.milliseconds
import kotlin.time.Duration.Companion.seconds
import kotlin.time.toJavaDuration
import kotlinx.coroutines.CoroutineDispatcher
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.CoroutineStart
import kotlinx.coroutines.Runnable
import kotlinx.coroutines.SupervisorJob
import kotlinx.coroutines.delay
import kotlinx.coroutines.flow.first
import kotlinx.coroutines.launch
import kotlinx.coroutines.runBlocking

/** The Kotlin package as an actor of the conformance engine; tests/README.md of the project has the protocol. */
class KotlinActor private constructor(private val lines: Lines) : Lines.Actor {
    private val scope = CoroutineScope(SupervisorJob() + Turns(lines))
    private val jobs = HashMap<Long, kotlinx.coroutines.Job>()
    private val holds = HashMap<Long, Guard>()
    private val scopes = HashMap<String, Scope>()
    private var numbers = 0L
    private var connected: Client? = null

    /** Coroutines run in the actor's own thread, after the requests that are there. */
    private class Turns(private val lines: Lines) : CoroutineDispatcher() {
        override fun dispatch(context: CoroutineContext, block: Runnable) = lines.later(block)
    }

    private val client get() = connected ?: throw Refusal("closed", "this actor is not connected; send `connect` first")

    override fun request(request: JsonObject) {
        val id = request["id"].asLong
        when (request["op"].asString) {
            "abort" -> {
                jobs[request["target"].asLong]?.cancel()
                lines.answer(id, null)
            }
            "busy" -> {
                Thread.sleep(request["time"].asLong)
                lines.answer(id, null)
            }
            "connect" -> {
                runBlocking { connect(request) }
                lines.answer(id, null)
            }
            "crash" -> Runtime.getRuntime().halt(9)
            else -> {
                // Undispatched, so that what is asked reaches the core in the order of the requests.
                val job = scope.launch(start = CoroutineStart.UNDISPATCHED) { answer(id, request) }
                if (job.isActive) {
                    jobs[id] = job
                    job.invokeOnCompletion { jobs.remove(id) }
                }
            }
        }
    }

    private suspend fun gate(request: JsonObject): Any? {
        val (gate, key, token) = Triple(client.gate(), request["resource"].asString, request["token"].asLong)
        if (request["write"].isJsonPrimitive) return gate.awaitDelete(key, token)
        val write = request["write"].asJsonObject
        if (write.has("increment")) return gate.awaitIncrement(key, token, write["increment"].asLong)
        gate.awaitSet(key, token, write["set"].asString)
        return null
    }

    private suspend fun answer(id: Long, request: JsonObject) {
        try {
            lines.answer(id, answer(request))
        } catch (error: Throwable) {
            lines.refuse(id, error)
        }
    }

    private suspend fun connect(request: JsonObject) {
        val made = awaitConnect(request["url"].asString, with(ClientOptions(), request))
        val old = connected
        scope.launch { old?.awaitClose() }
        holds.clear()
        scopes.clear()
        connected = made
    }

    private suspend fun tried(lock: Acquirable<*>, request: JsonObject): Guard? =
        if (request.has("wait")) lock.awaitTryAcquire(request["wait"].asDouble.milliseconds) else lock.awaitTryAcquire()

    private suspend fun answer(request: JsonObject): Any? = when (request["op"].asString) {
        "ping" -> mapOf("actor" to "kotlin", "pid" to ProcessHandle.current().pid())
        "acquire" -> grant(lock(request).awaitAcquire())
        "try" -> grant(tried(lock(request), request))
        "acquire_all" -> grant(all(request).awaitAcquire())
        "try_all" -> grant(tried(all(request), request))
        "adopt" -> grant(client.awaitAdopt(request["text"].asString))
        "campaign" -> grant(election(request).awaitCampaign())
        "try_campaign" -> grant(election(request).awaitTryCampaign())
        "start_job" -> when (val start = job(request).awaitStart()) {
            is Run -> grant(start)
            is Skipped -> mapOf("skipped" to mapOf("reason" to start.reason().word()))
        }
        "with" -> lock(request).withLockSuspending { guard ->
            delay(request["work"].asDouble.milliseconds)
            mapOf("token" to guard.token())
        }
        "inspect" -> Shown.state(lock(request).awaitInspect())
        "is_locked" -> lock(request).awaitIsLocked()
        "break_lock" -> {
            val (name, reason) = listOf("lock", "reason").map { request[it].asString }
            Shown.holders(client.awaitBreakLock(name, reason, request["token"]?.asLong))
        }
        "gate" -> gate(request)
        "ping_store" -> client.awaitPing().inWholeMicroseconds / 1000.0
        "names" -> client.awaitNames(request["prefix"].asString)
        "leader" -> Shown.leader(election(request).awaitLeader())
        "observe" -> observe(request)
        "inspect_job" -> Shown.job(job(request).awaitInspect())
        "read_version" -> Shown.snapshot(version(request).awaitRead())
        "compare_and_set" -> {
            val expected = request["expected"].takeUnless { it.isJsonNull }?.asLong
            Shown.swapped(version(request).awaitCompareAndSet(expected, Lines.plain(request["value"])))
        }
        "delete_version" -> Shown.swapped(version(request).awaitDelete(request["expected"].asLong))
        "update" -> Shown.snapshot(version(request).awaitUpdate { seen ->
            (((seen as Long?) ?: 0L) + request["add"].asLong).takeIf { it >= 0 }
        })
        "load" -> Shown.stats(client.stats())
        "close" -> client.awaitClose().let { null }
        else -> onHold(request)
    }

    private suspend fun observe(request: JsonObject): Any? {
        val seen = request["seen"].takeUnless { it.isJsonNull }?.asJsonObject?.get("token")?.asLong
        return Shown.leader(election(request).leaderFlow().first { leader ->
            leader?.token()?.takeIf { it.isPresent }?.asLong != seen
        })
    }

    private suspend fun onHold(request: JsonObject): Any? {
        val op = request["op"].asString
        val number = request["guard"].asLong
        client
        val hold = if (op in GIVES_BACK) holds.remove(number) else holds[number]
        return when (op) {
            "is_held" -> hold?.isHeld == true
            "remaining" -> hold?.let { Shown.millis(it.remaining()) } ?: 0.0
            else -> onHold(op, number, hold ?: throw Refusal("not_held", "this actor has no such guard"), request)
        }
    }

    private suspend fun onHold(op: String, number: Long, hold: Guard, request: JsonObject): Any? = when (op) {
        "release", "end_job" -> giveBack(hold, request).toString()
        "transfer" -> (hold as Guard).awaitTransfer()
        "drop" -> if (hold is Run) scope.launch { hold.awaitFail() }.let { null } else hold.decline().let { null }
        "extend" -> hold.awaitExtend(request["ttl"].asDouble.milliseconds).let { null }
        "token" -> hold.token()
        "lost" -> {
            val mine = client
            scope.launch(start = CoroutineStart.UNDISPATCHED) {
                hold.awaitLost()
                // Those of an earlier client went with it.
                if (client === mine) {
                    lines.say(mapOf("event" to "lost", "guard" to number))
                }
            }
            null
        }
        else -> throw IllegalArgumentException("this actor does not know $op")
    }

    private suspend fun giveBack(hold: Guard, request: JsonObject): Released =
        if (request["succeeded"]?.asBoolean == true) (hold as Run).awaitSucceed() else hold.awaitRelease()

    private fun grant(hold: Guard?): Any? {
        val number = ++numbers
        holds[number] = hold ?: return null
        return Shown.`object`("guard", number, "token", hold.token(), "instant", (hold as? Run)?.instant()?.toEpochMilli())
    }

    private fun <T : HoldOptions<T>> with(of: T, request: JsonObject): T =
        Lines.options(request).entries.fold(of) { with, (name, value) -> with.option(name, value) }

    private fun lock(request: JsonObject): Lock {
        val name = request["lock"].asString
        val lock = when (request["mode"]?.asString ?: "exclusive") {
            "read" -> client.readLock(name)
            "write" -> client.writeLock(name)
            "permit" -> client.semaphore(name, request["permits"].asInt)
            else -> request["scope"]?.let { scopes.getOrPut(it.asString, client::scope).lock(name) } ?: client.lock(name)
        }
        return with(lock, request)
    }

    private fun all(request: JsonObject): All =
        with(client.all(*request.getAsJsonArray("locks").map { it.asString }.toTypedArray()), request)

    private fun election(request: JsonObject): Election = with(client.election(request["lock"].asString), request)

    private fun version(request: JsonObject): Versioned =
        Lines.options(request).entries.fold(client.version(request["lock"].asString)) { with, (name, value) -> with.option(name, value) }

    private fun job(request: JsonObject): Job {
        val name = request["lock"].asString
        val period = request["period"]?.asDouble?.milliseconds ?: 1.seconds
        val cron = request["cron"]?.asString
        val job = with(if (cron != null) client.job(name, cron, request["timezone"].asString) else client.job(name, period), request)
        val at: Duration = request["at"]?.takeUnless { it.isJsonNull }?.asDouble?.milliseconds ?: return job
        return job.at(Instant.EPOCH + at.toJavaDuration())
    }

    override fun leave() {
        runBlocking { connected?.awaitClose() }
    }

    companion object {
        private val GIVES_BACK = setOf("release", "drop", "end_job")

        /** Serves standard input. */
        @JvmStatic
        fun main(arguments: Array<String>) {
            val lines = Lines()
            lines.serve(KotlinActor(lines))
            exitProcess(0)
        }
    }
}
