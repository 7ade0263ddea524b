package io.github.fencelock.kotlin

import io.github.fencelock.Guarantees
import io.github.fencelock.Stats
import kotlin.time.Duration
import kotlin.time.toJavaDuration
import kotlin.time.toKotlinDuration
import kotlinx.coroutines.NonCancellable
import kotlinx.coroutines.withContext
import io.github.fencelock.Client as JavaClient

/**
 * A connection to one store, made by [Fencelock.connect]: it hands out locks and keeps them alive. Any number of coroutines
 * may share it.
 */
public class Client internal constructor(internal val java: JavaClient) {
    /**
     * A lock by name: 1 to 512 bytes of UTF-8 without control characters, not beginning with `fencelock:`. The same name is the same
     * lock in every language.
     */
    public fun lock(name: String): Lock = Lock(java.lock(name))

    /**
     * The reading side of a read-write lock: any number of readers, and no writer beside them. A writer that waits is not
     * passed by new readers.
     */
    public fun readLock(name: String): Lock = Lock(java.readLock(name))

    /** The writing side of a read-write lock: nobody beside it. */
    public fun writeLock(name: String): Lock = Lock(java.writeLock(name))

    /** A reader that may become the writer ([Guard.upgrade]): one at a time, beside plain readers. */
    public fun upgradeable(name: String): Lock = Lock(java.upgradeable(name))

    /**
     * A semaphore: at most [limit] holders at once. Every acquire takes one permit; the permit of a holder that died comes
     * back when its lease has ended. Clients may ask with different limits, each is served by its own.
     */
    public fun semaphore(name: String, limit: Int): Lock = Lock(java.semaphore(name, limit))

    /** Several mutexes as one: all or nothing, in a global order. */
    public fun all(vararg names: String): All = All(java.all(*names))

    /** A new scope: whoever holds a lock in it may enter again. */
    public fun scope(): Scope = Scope(java.scope())

    /** A mutex that may be entered again through what is returned here: a lock in a [scope] of its own. */
    public fun reentrant(name: String): Lock = Lock(java.reentrant(name))

    /** An election: one leader at a time, the next one in order. */
    public fun election(name: String): Election = Election(java.election(name))

    /** A scheduled job: at most one run in each [period] (10 ms or longer), whoever asks for it. */
    public fun job(name: String, period: Duration): Job = Job(java.job(name, period.toJavaDuration()))

    /** A value by name that is replaced only if nobody was faster. */
    public fun version(name: String): Versioned = Versioned(java.version(name))

    /** The names of the locks the store knows, in order, as [lock] takes them. An empty prefix: all. */
    public suspend fun names(prefix: String = ""): List<String> = java.namesAsync(prefix).await()

    /** Asks the store for nothing, and answers how long that took; for health checks. It fails as any request does, within `timeout`. */
    public suspend fun ping(): Duration = java.pingAsync().await().toKotlinDuration()

    /** What this store is able to do, and what this configuration survives, in words. */
    public fun guarantees(): Guarantees = java.guarantees()

    /** What this client carries at the moment: all zeros at rest. */
    public fun stats(): Stats = java.stats()

    /**
     * Refuses new acquires, gives up those under way, frees what is held (guards that still live are lost from now on), waits
     * at most two seconds until the store has confirmed all that, and disconnects. To close it again does nothing.
     */
    public suspend fun close() {
        withContext(NonCancellable) { java.closeAsync().await() }
    }

    override fun toString(): String = java.toString()
}

/** Runs [body] with this client and closes it, whatever becomes of that. */
public suspend inline fun <R> Client.use(body: (Client) -> R): R =
    try {
        body(this)
    } finally {
        close()
    }

/**
 * Where reentrancy ends: a lock held in a scope is entered again by anybody who has the scope, without a round trip, with the
 * same token and deadline, past everybody who waits. It is free when every guard of it was given back. A scope is not bound to
 * a coroutine; hand it to those who shall enter too.
 *
 * @sample io.github.fencelock.kotlin.Samples.scopes
 */
public class Scope internal constructor(private val java: io.github.fencelock.Scope) {
    /** A mutex by name that this scope may enter again. On the store it is the ordinary mutex of that name. */
    public fun lock(name: String): Lock = Lock(java.lock(name))
}
