package io.github.fencelock.kotlin

import kotlinx.coroutines.runBlocking
import org.junit.jupiter.api.Test

/** The examples of the documentation run. */
class SamplesTest {
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
