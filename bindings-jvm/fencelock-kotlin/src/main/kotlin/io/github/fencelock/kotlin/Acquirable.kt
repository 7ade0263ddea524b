package io.github.fencelock.kotlin

import io.github.fencelock.Acquirable
import io.github.fencelock.Guard
import io.github.fencelock.Lock
import io.github.fencelock.LockState
import kotlin.time.Duration
import kotlinx.coroutines.CoroutineScope

/**
 * [Acquirable.acquire] that suspends. Cancelled, it takes back whatever it has won or queued.
 *
 * @sample io.github.fencelock.kotlin.Samples.guard
 */
public suspend fun Acquirable<*>.awaitAcquire(): Guard = acquireAsync().awaitGuard()

/** Waits for the lock at most this long; see [awaitAcquire]. */
public suspend fun Acquirable<*>.awaitAcquire(wait: Duration): Guard = acquireAsync(wait.orNone()).awaitGuard()

/** Asks once: `null` if somebody else holds the lock or waits for it. */
public suspend fun Acquirable<*>.awaitTryAcquire(): Guard? = tryAcquireAsync().awaitGuardOrNull()

/** Waits for the lock at most this long: `null` if somebody else holds it all the while. */
public suspend fun Acquirable<*>.awaitTryAcquire(wait: Duration): Guard? =
    if (wait.isInfinite()) awaitAcquire(wait) else tryAcquireAsync(wait.orNone()).awaitGuardOrNull()

/**
 * Runs [body] under the lock, releases it once and answers what the body answers. The body does not begin under a lock that is
 * lost. When the lock is lost, the body's scope is cancelled, and this fails with [io.github.fencelock.LockLostException]. An
 * error of the body itself wins: the loss is suppressed in it.
 *
 * @sample io.github.fencelock.kotlin.Samples.fiveLines
 */
public suspend fun <R> Acquirable<*>.withLockSuspending(body: suspend CoroutineScope.(Guard) -> R): R =
    awaitAcquire().protect({ awaitRelease() }, body)

/** [Lock.isLocked] that suspends. */
public suspend fun Lock.awaitIsLocked(): Boolean = isLockedAsync().await()

/** [Lock.inspect] that suspends. */
public suspend fun Lock.awaitInspect(): LockState = inspectAsync().await()
