package io.github.fencelock.kotlin

import io.github.fencelock.JobState
import io.github.fencelock.Why
import java.time.Instant

/** What [Job.startOrWhy] comes to: a [Run], or [Skipped]. */
public sealed interface Start

/**
 * No run was started: why, and what the store knew of the last one.
 *
 * @property why why
 * @property last the last run, and in its `info` who has it or had it
 * @property until when a run may start at the earliest, by the store's clock; while one is in progress, when that counts as dead
 *     unless it is heard of again; `null` if only the scheduler knows the next instant
 */
public data class Skipped(val why: Why, val last: JobState, val until: Instant?) : Start
