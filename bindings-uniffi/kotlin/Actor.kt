import com.google.gson.GsonBuilder
import com.google.gson.JsonElement
import com.google.gson.JsonObject
import com.google.gson.JsonParser
import io.github.fencelock.jna.*
import java.time.Duration
import java.time.Instant
import java.util.concurrent.Executors
import kotlin.system.exitProcess
import kotlinx.coroutines.*

/** The generated sources as an actor of the conformance engine; tests/README.md has the protocol. */
private val GSON = GsonBuilder().serializeNulls().disableHtmlEscaping().create()
/** One thread has all that is below: requests and completions take turns in it. */
private val TURNS = Executors.newSingleThreadExecutor().asCoroutineDispatcher()
private val scope = CoroutineScope(SupervisorJob() + TURNS)
private val guards = HashMap<Long, Guard>()
private val runs = HashMap<Long, Run>()
private val scopes = HashMap<String, Scope>()
private val asked = HashMap<Long, Job>()
private var numbers = 0L
private var connected: Client? = null

private class Refusal(val code: String, message: String) : Exception(message)

private val client get() = connected ?: throw Refusal("closed", "this actor is not connected")

private fun JsonObject.given(name: String): JsonElement? = this[name]?.takeUnless { it.isJsonNull }
private fun JsonObject.text(name: String): String = this[name].asString
// Less than no time is no time, as in Ruby: uniffi takes no negative one.
private fun JsonObject.span(name: String): Duration? = given(name)?.let { Duration.ofNanos((maxOf(it.asDouble, 0.0) * 1e6).toLong()) }
private fun JsonObject.number(name: String): ULong? = given(name)?.asLong?.toULong()
private fun JsonObject.options(): Map<String, Setting>? =
    given("options")?.asJsonObject?.entrySet()?.associate { (name, value) -> name to Setting.Json(GSON.toJson(value)) }

private fun say(vararg message: Pair<String, Any?>) {
    println(GSON.toJson(mapOf(*message)))
    System.out.flush()
}

private fun failure(error: Throwable): Map<String, Any?> {
    fun told(code: String, text: Any?, retryable: Any? = false, fields: Any? = emptyMap<String, String>()) =
        mapOf("code" to code, "message" to text, "retryable" to retryable, "fields" to fields)
    // Each code is a class with the same three properties, which their parent does not have.
    fun of(name: String) = error.javaClass.getMethod(name).invoke(error)
    return when (error) {
        is FencelockException -> {
            val code = error.javaClass.simpleName.replace(Regex("(?<=.)[A-Z]"), "_$0").lowercase()
            told(code, of("getText"), of("getRetryable"), of("getFields"))
        }
        is Refusal -> told(error.code, error.message)
        is CancellationException -> told("cancelled", "the caller gave this operation up")
        else -> told("internal", "the actor itself has failed: $error")
    }
}

private fun lock(request: JsonObject): Lock {
    val (name, options) = request.text("lock") to request.options()
    return when (request.given("mode")?.asString) {
        "read" -> client.readLock(name, options)
        "write" -> client.writeLock(name, options)
        "permit" -> client.semaphore(name, request["permits"].asInt.toUInt(), options)
        else -> request.given("scope")?.let { scopes.getOrPut(it.asString, client::scope).lock(name, options) } ?: client.lock(name, options)
    }
}

private fun all(request: JsonObject) = client.all(request["locks"].asJsonArray.map { it.asString }, request.options())
private fun election(request: JsonObject) = client.election(request.text("lock"), request.options())
private fun version(request: JsonObject) = client.version(request.text("lock"), request.options())
private fun guard(request: JsonObject) = guards[request["guard"].asLong] ?: throw Refusal("not_held", "this actor has no such guard")

private fun job(request: JsonObject): ScheduledJob {
    val (cron, timezone) = listOf("cron", "timezone").map { request.given(it)?.asString }
    val every = request.span("period") ?: Duration.ofSeconds(1).takeIf { cron == null }
    return client.job(request.text("lock"), every, cron, timezone, request.options())
}

private fun keep(guard: Guard?, vararg facts: Pair<String, Any>): Any? {
    guards[++numbers] = guard ?: return null
    return mapOf("guard" to numbers, "token" to guard.token().toLong(), *facts)
}

/** Gives a guard back. One that was refused is still there. */
private suspend fun ended(request: JsonObject, end: suspend (Guard) -> Released): String {
    val released = end(guard(request))
    guards.remove(request["guard"].asLong)
    return released.name.lowercase()
}

private suspend fun endJob(request: JsonObject) = ended(request) {
    val run = runs.getValue(request["guard"].asLong)
    if (request["succeeded"].asBoolean) run.succeed() else run.fail()
}

private fun seen(leader: Leader?) = leader?.let { mapOf("token" to it.token?.toLong(), "info" to it.info) }
private fun seen(read: Snapshot?) = read?.let { mapOf("value" to JsonParser.parseString(it.value), "version" to it.version.toLong()) }

private suspend fun connect(request: JsonObject) {
    val made = Client.connect(request.text("url"), request.options(), "kotlin")
    connected?.let { old -> scope.launch { old.disconnect() } }
    listOf(guards, runs, scopes).forEach { it.clear() }
    connected = made
}

/** A body under a lock, which a loss ends. */
private suspend fun body(guard: Guard, work: Long): Any {
    try {
        withTimeoutOrNull(work) { guard.lost() }
        guard.check()
        return mapOf("token" to guard.token().toLong())
    } finally {
        guard.release()
    }
}

private suspend fun state(lock: Lock): Any {
    val state = JsonParser.parseString(lock.inspectLock()).asJsonObject
    for (one in state["holders"].asJsonArray + state["waiters"].asJsonArray) {
        one.asJsonObject.add("info", JsonParser.parseString(one.asJsonObject.text("info").ifEmpty { "{}" }))
    }
    state.add("holder", state["holders"].asJsonArray.firstOrNull())
    return state
}

private suspend fun observe(request: JsonObject): Any? {
    val before = request.given("seen")?.asJsonObject?.number("token")
    val observer = election(request).observe()
    while (true) observer.changed().let { leader -> if (leader?.token != before) return seen(leader) }
}

private suspend fun startJob(request: JsonObject): Any? =
    when (val start = job(request).start(request.given("at")?.let { Instant.ofEpochMilli(it.asLong) })) {
        is Start.Started -> keep(start.run.guard(), "instant" to start.run.instant().toEpochMilli()).also { runs[numbers] = start.run }
        is Start.Skipped -> mapOf("skipped" to mapOf("reason" to start.reason))
    }

private suspend fun swapped(version: Versioned, done: ULong?) =
    if (done != null) mapOf("done" to done.toLong()) else mapOf("changed" to seen(version.read()))

private suspend fun update(version: Versioned, add: Long): Any? {
    while (true) {
        val read = version.read()
        val sum = (read?.value?.toLong() ?: 0) + add
        if (sum < 0) return null
        version.compareAndSet(read?.version, "$sum")?.let { return seen(Snapshot("$sum", it)) }
    }
}

private suspend fun gate(request: JsonObject): Any? {
    val (gate, key, token) = Triple(client.gate(), request.text("resource"), request.number("token")!!)
    val write = request["write"].takeIf { it.isJsonObject }?.asJsonObject ?: return gate.delete(key, token)
    return if (write.has("set")) gate.set(key, token, write.text("set")).let { null } else gate.increment(key, token, write["increment"].asLong)
}

private fun tellLoss(number: Long, guard: Guard) {
    val mine = client
    scope.launch { if (guard.lost() && client === mine) say("event" to "lost", "guard" to number) }
}

private suspend fun perform(op: String, request: JsonObject): Any? = when (op) {
    "ping" -> mapOf("actor" to "jna kotlin", "pid" to ProcessHandle.current().pid())
    "connect" -> connect(request).let { null }
    "abort" -> asked[request["target"].asLong]?.cancel().let { null }
    "busy" -> Thread.sleep(request["time"].asLong).let { null }
    "crash" -> Runtime.getRuntime().halt(9)
    "acquire" -> keep(lock(request).acquire(null))
    "try" -> keep(lock(request).tryAcquire(request.span("wait")))
    "acquire_all" -> keep(all(request).acquire(null))
    "try_all" -> keep(all(request).tryAcquire(request.span("wait")))
    "campaign" -> keep(election(request).campaign())
    "try_campaign" -> keep(election(request).tryCampaign(null))
    "adopt" -> keep(client.adopt(request.text("text")))
    "with" -> body(lock(request).acquire(null), request["work"].asDouble.toLong())
    "release" -> ended(request) { it.release() }
    "transfer" -> guard(request).also { guards.remove(request["guard"].asLong) }.transfer()
    "drop" -> guard(request).forget().also { guards.remove(request["guard"].asLong) }.let { null }
    "extend" -> guard(request).extend(request.span("ttl")!!).let { null }
    "is_held" -> guards[request["guard"].asLong]?.isHeld() == true
    "remaining" -> (guards[request["guard"].asLong]?.remaining() ?: Duration.ZERO).toNanos() / 1e6
    "token" -> guard(request).token().toLong()
    "lost" -> tellLoss(request["guard"].asLong, guard(request)).let { null }
    "inspect" -> state(lock(request))
    "is_locked" -> lock(request).isLocked()
    "break_lock" -> JsonParser.parseString(client.breakLock(request.text("lock"), request.text("reason"), request.number("token")))
    "ping_store" -> client.ping().toNanos() / 1e6
    "names" -> client.names(request.text("prefix"))
    "leader" -> seen(election(request).leader())
    "observe" -> observe(request)
    "start_job" -> startJob(request)
    "end_job" -> endJob(request)
    "inspect_job" -> JsonParser.parseString(job(request).lastRun())
    "read_version" -> seen(version(request).read())
    "compare_and_set" -> version(request).let { swapped(it, it.compareAndSet(request.number("expected"), GSON.toJson(request["value"]))) }
    "delete_version" -> version(request).let { swapped(it, it.delete(request.number("expected")!!)) }
    "update" -> update(version(request), request["add"].asLong)
    "gate" -> gate(request)
    "load" -> client.stats().let { (entries, locks) ->
        mapOf("running" to asked.size - 1, "done" to 0, "guards" to guards.size, "entries" to entries.toLong(), "locks" to locks.toLong())
    }
    "close" -> client.disconnect().let { null }
    else -> throw IllegalArgumentException("this actor does not know $op")
}

fun main() {
    for (line in generateSequence(::readLine)) scope.launch {
        val request = JsonParser.parseString(line).asJsonObject
        val (id, op) = request["id"].asLong to request.text("op")
        asked[id] = coroutineContext.job
        val ended = runCatching {
            if (op !in setOf("ping", "connect", "busy", "crash")) client
            perform(op, request)
        }
        asked.remove(id)
        ended.fold({ say("id" to id, "ok" to it) }, { say("id" to id, "error" to failure(it)) })
    }
    runBlocking(TURNS) { connected?.disconnect() }
    exitProcess(0)
}
