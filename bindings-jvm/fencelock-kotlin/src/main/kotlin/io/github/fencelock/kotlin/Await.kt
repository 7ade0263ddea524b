package io.github.fencelock.kotlin

import java.util.concurrent.CompletableFuture
import java.util.concurrent.CompletionException
import kotlin.coroutines.resumeWithException
import kotlinx.coroutines.suspendCancellableCoroutine

/** Waits for a future. Cancelled, it gives that up; what had come of it by then is [declined]. */
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
