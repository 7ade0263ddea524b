// An account that eight workers deduct from at once: by a version, under a lock, and with neither. The same account as
// balance.rs, in Kotlin.
//
//   --how version (or lock, or none)
//
// `--url` is the store of the version and of the lock, `--book` the SQLite file that the other two ways keep the account in. By
// default both lie in a folder of their own. balance.rs tells more, and deducts from the same account if both are given. The book
// is opened by JDBC: `org.xerial:sqlite-jdbc` has to be on the class path.

import io.github.fencelock.kotlin.awaitConnect
import io.github.fencelock.kotlin.useSuspending
import java.nio.file.Path
import kotlin.io.path.ExperimentalPathApi
import kotlin.io.path.createTempDirectory
import kotlin.io.path.deleteRecursively
import kotlin.system.exitProcess
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.async
import kotlinx.coroutines.awaitAll
import kotlinx.coroutines.coroutineScope
import kotlinx.coroutines.runBlocking

/** It does not divide the balance, so in the end there is something left that covers no deduction. */
private const val AMOUNT = 3L

/** The amount that one worker was paid, and how often it was refused. */
private class Tally(val paid: Long, val refused: Int)

/** The options of the command line, as `--name value`. */
private class Words(words: Array<String>, folder: Path) {
    private val all = words.toList().chunked(2).associate { (name, value) -> name to value }
    val how = all["--how"] ?: "version"
    val url = all["--url"] ?: "sqlite:${folder.resolve("locks.db")}"
    val book = all["--book"] ?: "${folder.resolve("book.db")}"
    val balance = all["--balance"]?.toLong() ?: 100
    val workers = all["--workers"]?.toInt() ?: 8
    val times = all["--times"]?.toInt() ?: 10
}

/** With the account, and with connections of its own: a program of its own in real life. */
private suspend fun <R> withAccount(asked: Words, body: suspend (Account) -> R): R =
    awaitConnect(asked.url).useSuspending { client ->
        when (asked.how) {
            "version" -> body(ByVersion.open(client, asked.balance))
            "lock" -> Book(asked.book, asked.balance).use { body(Locked(client, it)) }
            "none" -> Book(asked.book, asked.balance).use { body(Unlocked(it)) }
            else -> throw IllegalArgumentException("--how is version, lock or none, not ${asked.how}")
        }
    }

private suspend fun work(asked: Words): Tally = withAccount(asked) { account ->
    val covered = List(asked.times) { account.deduct(AMOUNT) }
    Tally(AMOUNT * covered.count { it }, covered.count { !it })
}

/** All the work, and whether the books add up after it. */
private suspend fun deduct(asked: Words): Boolean {
    val ours = coroutineScope {
        List(asked.workers) { async(Dispatchers.IO) { work(asked) } }.awaitAll()
    }
    val books = withAccount(asked) { it.books() }
    // Others may have deducted too: the books have what they were paid besides.
    val exact = books.balance >= 0 && books.paid + books.balance == books.opened && ours.sumOf { it.paid } <= books.paid
    val (refused, verdict) = ours.sumOf { it.refused } to if (exact) "exact" else "not exact"
    println("${asked.how}: paid out ${books.paid}, refused $refused, left ${books.balance} of ${books.opened}, $verdict")
    return exact
}

@OptIn(ExperimentalPathApi::class)
fun main(words: Array<String>) {
    val folder = createTempDirectory("fencelock-balance")
    val exact = try {
        runBlocking { deduct(Words(words, folder)) }
    } finally {
        folder.deleteRecursively()
    }
    exitProcess(if (exact) 0 else 1)
}
