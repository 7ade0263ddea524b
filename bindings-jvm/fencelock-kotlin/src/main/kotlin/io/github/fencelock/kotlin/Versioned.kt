package io.github.fencelock.kotlin

import io.github.fencelock.Snapshot
import io.github.fencelock.Swapped
import java.util.OptionalLong
import kotlin.jvm.optionals.getOrNull
import io.github.fencelock.Versioned as JavaVersioned

/**
 * A value by name, made by [Client.version], that is replaced only if nobody was faster. Nobody holds anything: whoever changes
 * the value names the version it has read, and is told if somebody was faster.
 *
 * A value is what JSON knows, so that every language reads what another wrote: `null`, [Boolean], [String], [Long], [Double],
 * [List], [Map] with texts as keys. It has at most 1 MiB.
 *
 * @sample io.github.fencelock.kotlin.Samples.version
 */
public class Versioned internal constructor(private val java: JavaVersioned) : LockOptions<Versioned> {
    /** The name. */
    public val name: String get() = java.name()

    override fun option(name: String, value: Any?): Versioned = Versioned(java.option(name, plain(value)))

    /** The value and its version; `null` if there is none. */
    public suspend fun read(): Snapshot? = java.readAsync().await().getOrNull()

    /** Writes the value if its version is still [expected]; with `null`, if there is no value. */
    public suspend fun compareAndSet(expected: Long?, value: Any?): Swapped {
        val version = if (expected == null) OptionalLong.empty() else OptionalLong.of(expected)
        return java.compareAndSetAsync(version, value).await()
    }

    /** Deletes the value if its version is still [expected]. Versions rise on from there. */
    public suspend fun delete(expected: Long): Swapped = java.deleteAsync(expected).await()

    /**
     * Replaces the value by what [change] makes of it; it is given `null` if there is none. If somebody was faster, [change] is
     * asked again with what is there by then, after a short random pause, at most `retries` times; then it fails with
     * [io.github.fencelock.ConflictException]. If it answers `null`, everything stays as it is, and so does the answer.
     *
     * [change] runs on a thread of fencelock's callbacks: it must not wait for anything.
     */
    public suspend fun update(change: (Any?) -> Any?): Snapshot? = java.updateAsync(change).await().getOrNull()
}
