package io.github.fencelock.kotlin

import java.io.File
import kotlinx.coroutines.runBlocking
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test

/** The examples of the documentation run. */
class SamplesTest {
    @Test
    fun `the block of the README is one of them`() {
        val block = File("../../README.md").readText().substringAfter("```kotlin\n").substringBefore("```")
        val samples = File("src/test/kotlin/io/github/fencelock/kotlin/Samples.kt").readText()
        assertTrue(samples.contains(block.prependIndent("        ").trimEnd()), block)
    }

    @Test
    fun `the examples run`() = runBlocking {
        Samples.fiveLines()
        Samples.options()
        Samples.guard()
        Samples.scopes()
        Samples.election()
        Samples.job()
        Samples.version()
    }
}
