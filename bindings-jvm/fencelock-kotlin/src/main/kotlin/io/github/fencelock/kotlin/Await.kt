package io.github.fencelock.kotlin

import io.github.fencelock.Guard
import java.util.Optional
import java.util.concurrent.CompletableFuture
import java.util.concurrent.CompletionException
import kotlin.coroutines.resumeWithException
import kotlin.jvm.optionals.getOrNull
import kotlin.time.Duration
import kotlin.time.toJavaDuration
import kotlinx.coroutines.suspendCancellableCoroutine

/**
 * Waits for a future. Cancelled, it cancels the future; an answer that is there already is [declined], which kotlinx's own `await`
 * would leave to nobody.
 */
internal suspend fun <T> CompletableFuture<T>.await(declined: (T) -> Unit = {}): T =
    suspendCancellableCoroutine { continuation ->
        continuation.invokeOnCancellation { cancel(true) }
        whenComplete { value, error ->
            if (error == null) {
                continuation.resume(value) { _, unheard, _ -> declined(unheard) }
            } else {
                continuation.resumeWithException((error as? CompletionException)?.cause ?: error)
            }
        }
    }

/** A coroutine may go on long after the grant: a hold that was lost meanwhile is taken back, and the loss is thrown. */
internal suspend fun CompletableFuture<Guard>.awaitGuard(): Guard =
    await { unheard -> unheard.decline() }.apply { begin() }

internal suspend fun CompletableFuture<Optional<Guard>>.awaitGuardOrNull(): Guard? =
    await { unheard -> unheard.ifPresent { it.decline() } }.getOrNull()?.apply { begin() }

/** As Java has it: there a time without end is none. */
internal fun Duration.orNone(): java.time.Duration? = if (isInfinite()) null else toJavaDuration()
