package io.github.fencelock.kotlin

import io.github.fencelock.Leader
import kotlin.jvm.optionals.getOrNull
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.flow.Flow
import kotlinx.coroutines.flow.flow
import io.github.fencelock.Election as JavaElection

/**
 * An election, made by [Client.election]: whoever campaigns waits in order; the leader leads until it resigns, its process ends, or
 * it cannot renew its lease any more. It is held over the lock of the same name, and who leads is fenced by the lock's token.
 *
 * @sample io.github.fencelock.kotlin.Samples.election
 */
public class Election internal constructor(private val java: JavaElection) : LockOptions<Election> {
    /** The name. */
    public val name: String get() = java.name()

    override fun option(name: String, value: Any?): Election = Election(java.option(name, plain(value)))

    /** Waits until this candidate leads, for ever or as long as the option `wait` says. Cancelled, it is no candidate any more. */
    public suspend fun campaign(): Leadership =
        Leadership(java.campaignAsync().await { unheard -> unheard.decline() }).begin()

    /** Leads if nobody else does or stands for it. */
    public suspend fun tryCampaign(): Leadership? =
        java.tryCampaignAsync().await { unheard -> unheard.ifPresent { it.decline() } }.map(::Leadership).orElse(null)?.begin()

    /** Runs [body] while this candidate leads, and resigns. When the office is lost, the body's scope is cancelled. */
    public suspend fun <R> whileLeading(body: suspend CoroutineScope.(Leadership) -> R): R =
        campaign().protect({ resign() }, body)

    /** Who leads now; `null` if nobody does. */
    public suspend fun leader(): Leader? = java.leaderAsync().await().getOrNull()

    /**
     * Who leads: at once at first, then whenever that has changed, at most one `observe` later. A leader that came and went in
     * between is not told. While the store cannot be reached, it goes on looking.
     */
    public fun observe(): Flow<Leader?> = flow {
        val observer = java.observe()
        while (true) {
            emit(observer.changedAsync().await().getOrNull())
        }
    }
}
