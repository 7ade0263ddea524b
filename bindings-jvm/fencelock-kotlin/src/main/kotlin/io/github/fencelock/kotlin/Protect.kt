package io.github.fencelock.kotlin

import io.github.fencelock.Guard
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
internal suspend fun <H : Guard, R> H.protect(
    giveBack: suspend H.(well: Boolean) -> Released,
    body: suspend CoroutineScope.(H) -> R,
): R {
    val protection = Protection<H, R>(this)
    val result = try {
        protection.run(body)
    } catch (error: Throwable) {
        if (!protection.begun) {
            decline()
            throw error
        }
        withContext(NonCancellable) {
            runCatching { giveBack(false).check(this@protect) }.onFailure { if (!protection.told) error.addSuppressed(it) }
        }
        throw error
    }
    withContext(NonCancellable) { giveBack(true) }.check(this)
    return result
}

private class Protection<H : Guard, R>(private val hold: H) {
    private val loss = CancellationException("`${hold.name()}` was lost")

    /** Whether the body has. */
    var begun = false

    /** Whether what is thrown is the loss itself. */
    var told = false

    suspend fun run(body: suspend CoroutineScope.(H) -> R): R {
        var own: Throwable? = null
        try {
            return coroutineScope {
                val watch = launch(start = CoroutineStart.UNDISPATCHED) {
                    hold.awaitLost()
                    this@coroutineScope.cancel(loss)
                }
                // A cancel that came after the grant is no reason to begin.
                ensureActive()
                begun = true
                val result = try {
                    body(hold)
                } catch (error: Throwable) {
                    own = error
                    throw error
                }
                watch.cancel()
                result
            }
        } catch (ended: CancellationException) {
            // Ended from outside, it was not the loss.
            currentCoroutineContext().ensureActive()
            val thrown = own ?: ended
            // Coroutines throw copies of others.
            if (generateSequence(thrown) { it.cause }.any { it === loss }) {
                told = true
                hold.check()
            }
            throw thrown
        }
    }
}
