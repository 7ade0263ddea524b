// Written from the core's table of options; `OptionTableTest` keeps it so.
package io.github.fencelock.kotlin

import io.github.fencelock.ElectionOptions
import io.github.fencelock.HoldOptions
import io.github.fencelock.JobOptions
import io.github.fencelock.LockOptions
import io.github.fencelock.StoreOptions
import io.github.fencelock.VersionOptions
import io.github.fencelock.WaitOptions
import kotlin.time.Duration

/** [HoldOptions.ttl] with Kotlin's duration. */
public fun <T> HoldOptions<T>.ttl(ttl: Duration): T = ttl(ttl.orNone())

/** [WaitOptions.waitAtMost] with Kotlin's duration; infinite is none. */
public fun <T> WaitOptions<T>.waitAtMost(waitAtMost: Duration): T = waitAtMost(waitAtMost.orNone())

/** [LockOptions.maxHold] with Kotlin's duration; infinite is none. */
public fun <T> LockOptions<T>.maxHold(maxHold: Duration): T = maxHold(maxHold.orNone())

/** [JobOptions.atLeastFor] with Kotlin's duration; infinite is none. */
public fun <T> JobOptions<T>.atLeastFor(atLeastFor: Duration): T = atLeastFor(atLeastFor.orNone())

/** [JobOptions.atMostFor] with Kotlin's duration; infinite is none. */
public fun <T> JobOptions<T>.atMostFor(atMostFor: Duration): T = atMostFor(atMostFor.orNone())

/** [ElectionOptions.observe] with Kotlin's duration. */
public fun <T> ElectionOptions<T>.observe(observe: Duration): T = observe(observe.orNone())

/** [VersionOptions.backoff] with Kotlin's duration. */
public fun <T> VersionOptions<T>.backoff(backoff: Duration): T = backoff(backoff.orNone())

/** [VersionOptions.keep] with Kotlin's duration; infinite is none. */
public fun <T> VersionOptions<T>.keep(keep: Duration): T = keep(keep.orNone())

/** [StoreOptions.timeout] with Kotlin's duration. */
public fun <T> StoreOptions<T>.timeout(timeout: Duration): T = timeout(timeout.orNone())

/** [StoreOptions.maxTtl] with Kotlin's duration. */
public fun <T> StoreOptions<T>.maxTtl(maxTtl: Duration): T = maxTtl(maxTtl.orNone())

/** [StoreOptions.connectTimeout] with Kotlin's duration. */
public fun <T> StoreOptions<T>.connectTimeout(connectTimeout: Duration): T = connectTimeout(connectTimeout.orNone())
