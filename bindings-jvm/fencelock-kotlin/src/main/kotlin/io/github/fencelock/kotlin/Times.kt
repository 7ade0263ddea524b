package io.github.fencelock.kotlin

import kotlin.time.Duration
import kotlin.time.toJavaDuration

/** A value as the Java package takes it; a time that is infinite is none there. */
internal fun plain(value: Any?): Any? = when {
    value !is Duration -> value
    value.isInfinite() -> null
    else -> value.toJavaDuration()
}
