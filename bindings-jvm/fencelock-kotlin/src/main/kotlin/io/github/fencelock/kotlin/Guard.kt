package io.github.fencelock.kotlin

import io.github.fencelock.Guard
import io.github.fencelock.Released
import io.github.fencelock.Run
import kotlin.time.Duration
import kotlin.time.toJavaDuration

/** [Guard.extend] that suspends. */
public suspend fun Guard.awaitExtend(ttl: Duration) {
    extendAsync(ttl.toJavaDuration()).await()
}

/** Suspends until the hold is lost; for ever, if it is given back before that. */
public suspend fun Guard.awaitLost() {
    lost().await()
}

/** [Guard.release] that suspends. Cancelled, it frees the lock all the same. */
public suspend fun Guard.awaitRelease(): Released = releaseAsync().await()

/** [Guard.transfer] that suspends. */
public suspend fun Guard.awaitTransfer(): String = transferAsync().await()

/** [Run.succeed] that suspends. Cancelled, it marks the run all the same. */
public suspend fun Run.awaitSucceed(): Released = succeedAsync().await()

/** [Run.fail] that suspends. Cancelled, it marks the run all the same. */
public suspend fun Run.awaitFail(): Released = failAsync().await()
