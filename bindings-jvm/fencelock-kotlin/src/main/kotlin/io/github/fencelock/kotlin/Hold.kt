package io.github.fencelock.kotlin

import io.github.fencelock.Guard
import io.github.fencelock.Hold
import io.github.fencelock.Leadership
import io.github.fencelock.Released
import io.github.fencelock.Run
import kotlin.time.Duration
import kotlin.time.toJavaDuration

/** [Hold.extend] that suspends. */
public suspend fun Hold.awaitExtend(ttl: Duration) {
    extendAsync(ttl.toJavaDuration()).await()
}

/** Suspends until the hold is lost; for ever, if it is given back before that. */
public suspend fun Hold.awaitLost() {
    lost().await()
}

/** [Guard.release] that suspends. Cancelled, it frees the lock all the same. */
public suspend fun Guard.awaitRelease(): Released = releaseAsync().await()

/** [Guard.transfer] that suspends. */
public suspend fun Guard.awaitTransfer(): String = transferAsync().await()

/** [Leadership.resign] that suspends. Cancelled, it resigns all the same. */
public suspend fun Leadership.awaitResign(): Released = resignAsync().await()

/** [Run.succeed] that suspends. Cancelled, it marks the run all the same. */
public suspend fun Run.awaitSucceed(): Released = succeedAsync().await()

/** [Run.fail] that suspends. Cancelled, it marks the run all the same. */
public suspend fun Run.awaitFail(): Released = failAsync().await()
