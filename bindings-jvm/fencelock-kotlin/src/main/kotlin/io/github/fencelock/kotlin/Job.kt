package io.github.fencelock.kotlin

import io.github.fencelock.JobState
import java.time.Instant
import kotlin.jvm.optionals.getOrNull
import kotlinx.coroutines.CoroutineScope
import io.github.fencelock.Job as JavaJob
import io.github.fencelock.Run as JavaRun
import io.github.fencelock.Skipped as JavaSkipped

/**
 * A scheduled job, made by [Client.job]. Every process of the fleet asks for a run when its own schedule says so; one of them
 * gets it.
 *
 * A run is named by its *scheduled instant*, the last multiple of the period (counted from 1970, UTC) by the store's clock; a
 * timer may fire early by a tenth of the period, 30 s at most. It starts only if its instant is later than that of the last run,
 * that one is over, and half a period has passed since its start. A run that died is not run again, unless `retryDead` says so: it
 * may have done its work.
 *
 * @sample io.github.fencelock.kotlin.Samples.job
 */
public class Job internal constructor(private val java: JavaJob) : LockOptions<Job> {
    /** The name. */
    public val name: String get() = java.name()

    override fun option(name: String, value: Any?): Job = Job(java.option(name, plain(value)))

    /**
     * Names the run by this instant of the scheduler's own, instead of the last multiple of the period by the store's clock. It
     * may lie ahead of that clock by half a period, or a minute.
     */
    public fun at(instant: Instant): Job = Job(java.at(instant))

    /**
     * Starts the run that is due; `null` if there is none, and [startOrWhy] says why. Cancelled, it takes a run that was started
     * back, as if nobody had asked.
     */
    public suspend fun start(): Run? =
        java.startAsync().await { unheard -> unheard.ifPresent { it.decline() } }.map(::Run).orElse(null)?.begin()

    /**
     * Starts the run that is due, or says why there is none: the last one is in progress, this one was run, or none is due.
     * Cancelled, it takes a run that was started back, as if nobody had asked.
     */
    public suspend fun startOrWhy(): Start =
        when (val start = java.startOrWhyAsync().await { unheard -> (unheard as? JavaRun)?.decline() }) {
            is JavaRun -> Run(start).begin()
            is JavaSkipped -> Skipped(start.why, start.last, start.until.getOrNull())
        }

    /**
     * Runs [body] if a run is due, and marks the run as succeeded, or as failed if the body throws; answers whether one was due,
     * and tells [skipped] why not. When the run is lost, the body's scope is cancelled, and this fails with
     * [io.github.fencelock.LockLostException].
     */
    public suspend fun withRun(
        skipped: (Skipped) -> Unit = {},
        body: suspend CoroutineScope.(Run) -> Unit,
    ): Boolean {
        val run = when (val start = startOrWhy()) {
            is Run -> start
            is Skipped -> {
                skipped(start)
                return false
            }
        }
        run.protect({ well -> if (well) succeed() else fail() }, body)
        return true
    }

    /** The last run, as the store remembers it. */
    public suspend fun inspect(): JobState? = java.inspectAsync().await().getOrNull()
}
