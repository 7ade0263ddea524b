package io.github.fencelock.kotlin

import io.github.fencelock.JobState
import java.time.Instant
import kotlin.jvm.optionals.getOrNull
import kotlinx.coroutines.CoroutineScope
import io.github.fencelock.Job as JavaJob

/**
 * A scheduled job, made by [Client.job]. Every process of the fleet asks for a run when its own schedule says so; one of them
 * gets it.
 *
 * A run is named by its *scheduled instant*, the multiple of the period (counted from 1970, UTC) that is nearest to the store's
 * clock. It starts only if its instant is later than that of the last run, and that one is over. A run that died is not run
 * again, unless `retryDead` says so: it may have done its work.
 *
 * @sample io.github.fencelock.kotlin.Samples.job
 */
public class Job internal constructor(private val java: JavaJob) : LockOptions<Job> {
    /** The name. */
    public val name: String get() = java.name()

    override fun option(name: String, value: Any?): Job = Job(java.option(name, plain(value)))

    /**
     * Names the run by this instant of the scheduler's own, instead of the multiple of the period that is nearest to the store's
     * clock.
     */
    public fun at(instant: Instant): Job = Job(java.at(instant))

    /**
     * Starts the run that is due; `null` if that was started before, by whomever, or the last one still lasts. Cancelled, it takes
     * a run that was started back, as if nobody had asked.
     */
    public suspend fun start(): Run? =
        java.startAsync().await { unheard -> unheard.ifPresent { it.decline() } }.map(::Run).orElse(null)

    /**
     * Runs [body] if a run is due, and marks the run as succeeded, or as failed if the body throws; answers whether one was due.
     * When the run is lost, the body's scope is cancelled, and this fails with [io.github.fencelock.LockLostException].
     */
    public suspend fun withRun(body: suspend CoroutineScope.(Run) -> Unit): Boolean {
        val run = start() ?: return false
        run.protect({ well -> if (well) succeed() else fail() }, body)
        return true
    }

    /** The last run, as the store remembers it. */
    public suspend fun inspect(): JobState? = java.inspectAsync().await().getOrNull()
}
