package io.github.fencelock.kotlin

import io.github.fencelock.Snapshot
import io.github.fencelock.Swapped
import io.github.fencelock.Versioned
import java.util.OptionalLong
import kotlin.jvm.optionals.getOrNull

/** [Versioned.read] that suspends; `null` if there is no value. */
public suspend fun Versioned.awaitRead(): Snapshot? = readAsync().await().getOrNull()

/** Writes the value if its version is still [expected]; with `null`, if there is no value. */
public suspend fun Versioned.awaitCompareAndSet(expected: Long?, value: Any?): Swapped =
    compareAndSetAsync(expected?.let(OptionalLong::of) ?: OptionalLong.empty(), value).await()

/** [Versioned.delete] that suspends. */
public suspend fun Versioned.awaitDelete(expected: Long): Swapped = deleteAsync(expected).await()

/**
 * [Versioned.update] that suspends; `null` if [change] answers `null`. [change] runs on a thread of fencelock's callbacks: it must
 * not wait for anything.
 *
 * @sample io.github.fencelock.kotlin.Samples.version
 */
public suspend fun Versioned.awaitUpdate(change: (Any?) -> Any?): Snapshot? = updateAsync(change).await().getOrNull()
