// Written from the core's table of options; `OptionTableTest` keeps it so.
package io.github.fencelock.kotlin

import io.github.fencelock.LockOptions
import io.github.fencelock.StoreOptions
import kotlin.time.Duration

/** [LockOptions.ttl] with Kotlin's duration. */
public fun <T> LockOptions<T>.ttl(ttl: Duration): T = ttl(ttl.orNone())

/** [LockOptions.waitAtMost] with Kotlin's duration; infinite is none. */
public fun <T> LockOptions<T>.waitAtMost(waitAtMost: Duration): T = waitAtMost(waitAtMost.orNone())

/** [LockOptions.maxHold] with Kotlin's duration; infinite is none. */
public fun <T> LockOptions<T>.maxHold(maxHold: Duration): T = maxHold(maxHold.orNone())

/** [LockOptions.backoff] with Kotlin's duration. */
public fun <T> LockOptions<T>.backoff(backoff: Duration): T = backoff(backoff.orNone())

/** [LockOptions.keep] with Kotlin's duration; infinite is none. */
public fun <T> LockOptions<T>.keep(keep: Duration): T = keep(keep.orNone())

/** [LockOptions.atLeastFor] with Kotlin's duration; infinite is none. */
public fun <T> LockOptions<T>.atLeastFor(atLeastFor: Duration): T = atLeastFor(atLeastFor.orNone())

/** [LockOptions.atMostFor] with Kotlin's duration; infinite is none. */
public fun <T> LockOptions<T>.atMostFor(atMostFor: Duration): T = atMostFor(atMostFor.orNone())

/** [LockOptions.observe] with Kotlin's duration. */
public fun <T> LockOptions<T>.observe(observe: Duration): T = observe(observe.orNone())

/** [StoreOptions.timeout] with Kotlin's duration. */
public fun <T> StoreOptions<T>.timeout(timeout: Duration): T = timeout(timeout.orNone())

/** [StoreOptions.maxTtl] with Kotlin's duration. */
public fun <T> StoreOptions<T>.maxTtl(maxTtl: Duration): T = maxTtl(maxTtl.orNone())

/** [StoreOptions.connectTimeout] with Kotlin's duration. */
public fun <T> StoreOptions<T>.connectTimeout(connectTimeout: Duration): T = connectTimeout(connectTimeout.orNone())
