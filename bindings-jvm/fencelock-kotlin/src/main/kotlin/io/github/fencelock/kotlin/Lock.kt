package io.github.fencelock.kotlin

import io.github.fencelock.LockState
import kotlin.time.Duration
import kotlin.time.toJavaDuration
import kotlinx.coroutines.CoroutineScope
import io.github.fencelock.Acquirable as JavaAcquirable
import io.github.fencelock.All as JavaAll
import io.github.fencelock.Lock as JavaLock

/**
 * What can be acquired: a [Lock], or several as one ([All]). Nothing is asked of the store before that; a wrong name or option
 * is told by the acquire, with [io.github.fencelock.InvalidArgumentException].
 *
 * @param T itself.
 */
public sealed class Acquirable<T : Acquirable<T>>(private val java: JavaAcquirable<*>) : LockOptions<T> {
    /**
     * Waits for the lock, for ever or as long as the option `wait` says; then it fails with
     * [io.github.fencelock.LockTimeoutException]. Cancelled, it takes back whatever it has won or queued. A lock that was lost again
     * before this coroutine could go on is a [io.github.fencelock.LockLostException].
     */
    public suspend fun acquire(): Guard = Guard(java.acquireAsync().await { unheard -> unheard.decline() }).begin()

    /** Waits for the lock at most this long; see [acquire]. */
    public suspend fun acquire(wait: Duration): Guard {
        val asked = if (wait.isInfinite()) java.acquireAsync(null) else java.acquireAsync(wait.toJavaDuration())
        return Guard(asked.await { unheard -> unheard.decline() }).begin()
    }

    /** Asks once: `null` if somebody else holds the lock or waits for it. */
    public suspend fun tryAcquire(): Guard? =
        java.tryAcquireAsync().await { unheard -> unheard.ifPresent { it.decline() } }.map(::Guard).orElse(null)?.begin()

    /** Waits for the lock at most this long: `null` if somebody else holds it all the while. */
    public suspend fun tryAcquire(wait: Duration): Guard? {
        if (wait.isInfinite()) return acquire(wait)
        val asked = java.tryAcquireAsync(wait.toJavaDuration())
        return asked.await { unheard -> unheard.ifPresent { it.decline() } }.map(::Guard).orElse(null)?.begin()
    }

    /**
     * Runs [body] under the lock and answers what it answers; it does not begin under a lock that is lost. When the lock is
     * lost, the body's scope is cancelled, and this fails with [io.github.fencelock.LockLostException]. What the body throws
     * itself is never hidden by that: the loss is suppressed in it.
     *
     * @sample io.github.fencelock.kotlin.Samples.fiveLines
     */
    public suspend fun <R> withLock(body: suspend CoroutineScope.(Guard) -> R): R =
        acquire().protect({ release() }, body)

    override fun toString(): String = java.toString()
}

/**
 * A lock by name, made by a [Client]. Set its options, then acquire it, as often as you like. It is immutable: every option
 * gives another one.
 *
 * @sample io.github.fencelock.kotlin.Samples.guard
 */
public class Lock internal constructor(private val java: JavaLock) : Acquirable<Lock>(java) {
    /** The name. */
    public val name: String get() = java.name()

    /** Whether anybody holds the lock now; of a semaphore, any permit. By the time of the answer that may have changed. */
    public suspend fun isLocked(): Boolean = java.isLockedAsync().await()

    /** Who holds the lock and who waits for it. Changes nothing. */
    public suspend fun inspect(): LockState = java.inspectAsync().await()

    override fun option(name: String, value: Any?): Lock = Lock(java.option(name, plain(value)))
}

/**
 * Several mutexes that are acquired as one, made by [Client.all]: all or nothing. However the names are ordered, no two callers
 * ever wait for each other.
 */
public class All internal constructor(private val java: JavaAll) : Acquirable<All>(java) {
    override fun option(name: String, value: Any?): All = All(java.option(name, plain(value)))
}
