package io.github.fencelock.kotlin

import io.github.fencelock.Client
import kotlin.time.Duration.Companion.seconds
import kotlinx.coroutines.withTimeout
import kotlinx.coroutines.yield

/** Nothing runs, nothing is held, nobody waits. */
internal suspend fun Client.isAtRest(vararg locks: String) = withTimeout(20.seconds) {
    while (with(stats()) { running() + done() + guards() + entries() + locks() } > 0) yield()
    for (name in locks) {
        do {
            val state = lock(name).awaitInspect()
            yield()
        } while (state.holders().isNotEmpty() || state.waiters().isNotEmpty())
    }
}
