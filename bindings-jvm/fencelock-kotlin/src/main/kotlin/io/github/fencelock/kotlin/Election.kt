package io.github.fencelock.kotlin

import io.github.fencelock.Election
import io.github.fencelock.Guard
import io.github.fencelock.Leader
import kotlin.jvm.optionals.getOrNull
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.flow.Flow
import kotlinx.coroutines.flow.flow

/** [Election.campaign] that suspends. Cancelled, it is no candidate any more. */
public suspend fun Election.awaitCampaign(): Guard = awaitAcquire()

/** Leads if nobody else does or stands for it, otherwise `null`. */
public suspend fun Election.awaitTryCampaign(): Guard? = awaitTryAcquire()

/**
 * Runs [body] while this candidate leads, and resigns. When that is lost, the body's scope is cancelled, and this fails
 * with [io.github.fencelock.LockLostException].
 *
 * @sample io.github.fencelock.kotlin.Samples.election
 */
public suspend fun <R> Election.whileLeading(body: suspend CoroutineScope.(Guard) -> R): R =
    withLockSuspending(body)

/** [Election.leader] that suspends; `null` if nobody leads. */
public suspend fun Election.awaitLeader(): Leader? = leaderAsync().await().getOrNull()

/**
 * The leader, or null if nobody leads: at once at first, then after each change, at most one `observe` later. A leader that comes
 * and goes in between is not reported. While the store cannot be reached, the flow keeps asking.
 */
public fun Election.leaderFlow(): Flow<Leader?> = flow {
    val observer = observe()
    while (true) {
        emit(observer.changedAsync().await().getOrNull())
    }
}
