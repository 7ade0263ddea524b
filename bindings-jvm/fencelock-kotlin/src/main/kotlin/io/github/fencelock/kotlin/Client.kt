// Functions that suspend have names of their own: a member of the same name would win, and block the thread.
package io.github.fencelock.kotlin

import io.github.fencelock.Client
import io.github.fencelock.ClientOptions
import io.github.fencelock.Fencelock
import io.github.fencelock.Guard
import io.github.fencelock.Job
import io.github.fencelock.LockState
import kotlin.time.Duration
import kotlin.time.toJavaDuration
import kotlin.time.toKotlinDuration
import kotlinx.coroutines.NonCancellable
import kotlinx.coroutines.withContext

/**
 * [Fencelock.connect] that suspends. Cancelled, it leaves no client.
 *
 * @sample io.github.fencelock.kotlin.Samples.options
 */
public suspend fun awaitConnect(url: String, options: ClientOptions = ClientOptions()): Client =
    Fencelock.connectAsync(url, options.language("kotlin")).await { unheard -> unheard.closeAsync() }

/** Runs [body] with this client and closes it, however the body ends. */
public suspend inline fun <R> Client.useSuspending(body: (Client) -> R): R =
    try {
        body(this)
    } finally {
        awaitClose()
    }

/** [Client.close] that suspends. Cancelled, it closes all the same. */
public suspend fun Client.awaitClose() {
    withContext(NonCancellable) { closeAsync().await() }
}

/** [Client.names] that suspends. */
public suspend fun Client.awaitNames(prefix: String = ""): List<String> = namesAsync(prefix).await()

/** [Client.ping] that suspends. */
public suspend fun Client.awaitPing(): Duration = pingAsync().await().toKotlinDuration()

/** [Client.adopt] that suspends. */
public suspend fun Client.awaitAdopt(text: String): Guard = adoptAsync(text).awaitGuard()

/** [Client.breakLock] that suspends, or with a [token] [Client.breakHold]. */
public suspend fun Client.awaitBreakLock(name: String, reason: String, token: Long? = null): List<LockState.Holder> =
    (token?.let { breakHoldAsync(name, it, reason) } ?: breakLockAsync(name, reason)).await()

/** [Client.job] with Kotlin's duration. */
public fun Client.job(name: String, period: Duration): Job = job(name, period.toJavaDuration())
