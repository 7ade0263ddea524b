package io.github.fencelock.kotlin

import io.github.fencelock.Gate

/** [Gate.set] that suspends. */
public suspend fun Gate.awaitSet(key: String, token: Long, value: String) {
    setAsync(key, token, value).await()
}

/** [Gate.delete] that suspends. */
public suspend fun Gate.awaitDelete(key: String, token: Long): Boolean = deleteAsync(key, token).await()

/** [Gate.increment] that suspends. */
public suspend fun Gate.awaitIncrement(key: String, token: Long, by: Long = 1): Long =
    incrementAsync(key, token, by).await()
