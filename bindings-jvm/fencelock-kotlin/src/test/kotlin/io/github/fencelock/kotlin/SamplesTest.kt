package io.github.fencelock.kotlin

import io.github.fencelock.Stores
import java.io.File
import kotlinx.coroutines.runBlocking
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test

/** The examples of the documentation run. */
class SamplesTest {
    @Test
    fun `the blocks of the READMEs and of the documentation are among them`() {
        val samples = File("src/test/kotlin/io/github/fencelock/kotlin/Samples.kt").readText()
        val readmes = listOf("../../README.md", "../README.md", "../../docs/tutorial/jvm.md").map { File(it) }
        val guides = File("../../docs/how-to").listFiles().orEmpty()
        for (page in readmes + guides) {
            val blocks = page.readText().split("```kotlin\n").drop(1).map { it.substringBefore("```") }
            assertTrue(blocks.isNotEmpty() || page in guides, page.path)
            for (block in blocks) {
                val sample = block.replace("onnect(\"redis://127.0.0.1\")", "onnect(url)")
                assertTrue(samples.contains(sample.prependIndent("        ").trimEnd()), block)
            }
        }
    }

    @Test
    fun `none is forgotten`() {
        val tests = "src/test/kotlin/io/github/fencelock/kotlin"
        val run = File("$tests/SamplesTest.kt").readText()
        val samples = Regex("suspend fun (\\w+)\\(").findAll(File("$tests/Samples.kt").readText()).map { it.groupValues[1] }.toSet()
        val documented = File("src/main").walk().filter { it.isFile }
            .flatMap { Regex("@sample \\S+Samples\\.(\\w+)").findAll(it.readText()) }.map { it.groupValues[1] }.toSet()
        assertTrue(documented.isNotEmpty() && samples.containsAll(documented), "$documented of $samples")
        for (sample in samples) assertTrue(run.contains("Samples.$sample("), sample)
    }

    @Test
    fun `the examples run`() = runBlocking {
        Samples.fiveLines()
        Samples.service(Stores.redis().url())
        Samples.options()
        Samples.guard()
        Samples.scopes()
        Samples.election()
        Samples.job()
        Samples.version()
    }
}
