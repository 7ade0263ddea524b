package io.github.fencelock.kotlin

import io.github.fencelock.ShopTest.said
import io.github.fencelock.ShopTest.start
import io.github.fencelock.Stores
import java.nio.file.Path
import kotlin.io.path.readLines
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.io.TempDir

/** The other examples that are programs, in Kotlin. */
internal class KotlinProgramsTest {
    @Test
    fun `the balance is exact by version and under a lock only`() {
        for (how in listOf("version", "lock")) {
            val books = said(start("BalanceKt", "--how", how, "--balance", "31", "--times", "3"), 0)
            assertTrue(books.endsWith("$how: paid out 30, refused 14, left 1 of 31, exact\n"), books)
        }
        val books = said(start("BalanceKt", "--how", "none", "--balance", "31", "--workers", "4"), 1)
        val paid = Regex("none: paid out (\\d+), .* not exact\n").find(books)?.groupValues?.get(1)
        assertTrue(paid != null && paid.toInt() > 31, books)
    }

    @Test
    fun `of two nodes one runs in each period`(@TempDir folder: Path) {
        val runs = folder.resolve("runs.txt")
        val words = arrayOf("--url", Stores.redis().url(), "--period", "1", "--for", "1.5", "--output", "$runs")
        val nodes = listOf("one", "another").map { start("ScheduledJobKt", "--name", it, *words) }
        nodes.forEach { said(it, 0) }
        val instants = runs.readLines().map { it.substringBefore(' ') }
        assertEquals(instants.distinct(), instants)
    }
}
