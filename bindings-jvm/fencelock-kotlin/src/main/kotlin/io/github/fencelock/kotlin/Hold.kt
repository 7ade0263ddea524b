package io.github.fencelock.kotlin

import io.github.fencelock.Mode
import io.github.fencelock.Released
import java.time.Instant
import kotlin.time.Duration
import kotlin.time.toJavaDuration
import kotlin.time.toKotlinDuration
import io.github.fencelock.Guard as JavaGuard
import io.github.fencelock.Hold as JavaHold
import io.github.fencelock.Leadership as JavaLeadership
import io.github.fencelock.Run as JavaRun

/**
 * The local proof that something is held: a lock by a [Guard], an office by a [Leadership], the run of a job by a [Run].
 *
 * It knows its deadline on a clock that runs through suspend, counted from before the request that won it was sent, and stops
 * claiming to be held before the store may give the lock to another. It belongs to whoever has this object, not to a coroutine
 * or thread. Take it by `withLock`. One that the program has used, if only by [token], stays until it is given back or lost, its
 * client closes, or the process ends. One that is collected before any use is released then, with a warning in the log.
 */
public sealed class Hold(private val java: JavaHold) {
    /** The name; of several locks as one, all their names in order. */
    public val name: String get() = java.name()

    /**
     * The fencing token: a positive number under 2^53, larger than that of every earlier grant of the name (readers that enter
     * a quorum at once may share one). Hand it to the resource with every write, and let that refuse older ones. Of several
     * locks as one it is the first one's.
     */
    public val token: Long get() = java.token()

    /** Whether it may be relied on at this very moment, right also after the process was frozen. */
    public val isHeld: Boolean get() = java.isHeld

    /** How long it may still be relied on if it were not renewed any more; zero once it is lost or given back. */
    public val remaining: Duration get() = java.remaining().toKotlinDuration()

    /**
     * Nothing while it may be relied on, otherwise a [io.github.fencelock.LockLostException], or a
     * [io.github.fencelock.LockNotHeldException] once it was given back: to be called before a write.
     */
    public fun check(): Unit = java.check()

    /**
     * Pushes the end of the lease to at least now + [ttl], which is its length from now on. Never shortens it. A run of a job
     * cannot be extended.
     */
    public suspend fun extend(ttl: Duration) {
        java.extendAsync(ttl.toJavaDuration()).await()
    }

    /** Suspends until it is lost; for ever, if it is given back before that. */
    public suspend fun lost() {
        java.lost().await()
    }

    /** Runs [action] once if it is lost, on a thread of fencelock's callbacks; not if it is given back. */
    public fun onLost(action: () -> Unit): Unit = java.onLost(action)

    /**
     * Takes it back as if it had not been asked for, without waiting: for whoever was granted it and cannot use it any more. A
     * run of a job is left to others, instead of having failed.
     */
    public fun decline(): Unit = java.decline()

    internal fun confirm(): Unit = java.begin()

    override fun toString(): String = java.toString()
}

/** A coroutine may go on long after the grant: what was lost meanwhile is taken back, and the loss is thrown. */
internal fun <H : Hold> H.begin(): H = apply { confirm() }

/**
 * The local proof that a lock is held; [Acquirable.withLock] gives it back by itself.
 *
 * @sample io.github.fencelock.kotlin.Samples.guard
 */
public class Guard internal constructor(private val java: JavaGuard) : Hold(java) {
    /** The fencing token of each lock, by name: of several as one each resource is handed its own. */
    public val tokens: Map<String, Long> get() = java.tokens()

    /** Frees the lock, waits for the store's answer and tells how that went. Cancelled, it frees the lock all the same. */
    public suspend fun release(): Released = java.releaseAsync().await()

    /**
     * Makes an upgradeable reader the writer: waits until the other readers have left, while no new one enters. The guard then
     * has a new token. If it fails or is cancelled, the guard is the reader it was. Several at once are one, until the last is
     * given up; a downgrade meanwhile overtakes them (`CancelledException`).
     */
    public suspend fun upgrade() {
        java.upgradeAsync().await { unheard -> unheard.decline() }
    }

    /**
     * Turns a writer into an upgradeable or a plain reader, or an upgradeable into a plain reader: others may enter beside it.
     * It keeps its token. After an error the guard is the lesser reader all the same.
     */
    public suspend fun downgrade(mode: Mode) {
        java.downgradeAsync(mode).await()
    }
}

/** The guard of a leader: [isHeld] says whether it still leads at this very moment. */
public class Leadership internal constructor(private val java: JavaLeadership) : Hold(java) {
    /** Gives the leadership up, so that the next candidate leads, and waits for the store's answer. */
    public suspend fun resign(): Released = java.resignAsync().await()
}

/** A run of a job. */
public class Run internal constructor(private val java: JavaRun) : Hold(java), Start {
    /** The scheduled instant that this run is for. */
    public val instant: Instant get() = java.instant()

    /** Marks the run as succeeded and tells how that went; [Released.ALREADY_LOST]: it counted as dead before. */
    public suspend fun succeed(): Released = java.succeedAsync().await()

    /** Marks the run as failed and tells how that went. */
    public suspend fun fail(): Released = java.failAsync().await()
}
