package io.github.fencelock.kotlin

import io.github.fencelock.LockLostException
import io.github.fencelock.Released
import kotlinx.coroutines.CancellationException
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.CoroutineStart
import kotlinx.coroutines.NonCancellable
import kotlinx.coroutines.cancel
import kotlinx.coroutines.coroutineScope
import kotlinx.coroutines.currentCoroutineContext
import kotlinx.coroutines.ensureActive
import kotlinx.coroutines.launch
import kotlinx.coroutines.withContext

/**
 * Runs [body] in a scope that ends with the hold, and gives the hold back: well if the body came to its end, as if it
 * had not been asked for if the body has not even begun. What the body has thrown is never hidden by how that went; a loss is
 * suppressed in it.
 */
internal suspend fun <H : Hold, R> H.protect(
    giveBack: suspend H.(well: Boolean) -> Released,
    body: suspend CoroutineScope.(H) -> R,
): R {
    var begun = false
    val result = try {
        whileHeld { hold ->
            begun = true
            body(hold)
        }
    } catch (error: Throwable) {
        if (!begun) {
            decline()
            throw error
        }
        withContext(NonCancellable) {
            runCatching { giveBack(false).check() }.onFailure { if (error !is LockLostException) error.addSuppressed(it) }
        }
        throw error
    }
    withContext(NonCancellable) { giveBack(true) }.check()
    return result
}

private suspend fun <H : Hold, R> H.whileHeld(body: suspend CoroutineScope.(H) -> R): R {
    val hold = this
    try {
        return coroutineScope {
            val watch = launch(start = CoroutineStart.UNDISPATCHED) {
                hold.lost()
                this@coroutineScope.cancel("`${hold.name}` was lost")
            }
            // A cancel that came after the grant is no reason to begin.
            ensureActive()
            val result = body(hold)
            watch.cancel()
            result
        }
    } catch (ended: CancellationException) {
        // Ended from outside, it was not the loss.
        currentCoroutineContext().ensureActive()
        hold.check()
        throw ended
    }
}
