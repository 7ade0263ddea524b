package io.github.fencelock.kotlin

import io.github.fencelock.Job
import io.github.fencelock.JobState
import io.github.fencelock.Run
import io.github.fencelock.Skipped
import io.github.fencelock.Start
import kotlin.jvm.optionals.getOrNull
import kotlinx.coroutines.CoroutineScope

/** [Job.start] that suspends. Cancelled, it takes a run that was started back, as if nobody had asked. */
public suspend fun Job.awaitStart(): Start =
    startAsync().await { unheard -> (unheard as? Run)?.decline() }.also { (it as? Run)?.begin() }

/**
 * Runs [body] if a run is due, and marks the run as succeeded, or as failed if the body throws; answers whether one was due,
 * and calls [skipped] with the reason if not. When the run is lost, the body's scope is cancelled, and this fails with
 * [io.github.fencelock.LockLostException].
 *
 * @sample io.github.fencelock.kotlin.Samples.job
 */
public suspend fun Job.withRunSuspending(
    skipped: (Skipped) -> Unit = {},
    body: suspend CoroutineScope.(Run) -> Unit,
): Boolean = when (val start = awaitStart()) {
    is Run -> {
        start.protect({ well -> if (well) awaitSucceed() else awaitFail() }, body)
        true
    }
    is Skipped -> {
        skipped(start)
        false
    }
}

/** [Job.inspect] that suspends; `null` if the job has never run. */
public suspend fun Job.awaitInspect(): JobState? = inspectAsync().await().getOrNull()
