// The account, and the three ways to deduct from it.

import io.github.fencelock.Client
import io.github.fencelock.Versioned
import io.github.fencelock.kotlin.awaitAcquire
import io.github.fencelock.kotlin.awaitCompareAndSet
import io.github.fencelock.kotlin.awaitRead
import io.github.fencelock.kotlin.awaitRelease
import io.github.fencelock.kotlin.awaitUpdate
import java.sql.DriverManager
import kotlin.time.Duration.Companion.milliseconds
import kotlinx.coroutines.delay

/** The time a deduction takes between reading the balance and writing it. */
private val MOMENT = 2.milliseconds
private const val NAME = "fencelock-example:balance"

internal class Books(val opened: Long, val balance: Long, val paid: Long)

internal interface Account {
    /** Whether the balance covered the amount. If it did not, nothing has changed. */
    suspend fun deduct(amount: Long): Boolean

    suspend fun books(): Books
}

/** The account is one value, so that all of it changes at once. */
internal class ByVersion private constructor(private val account: Versioned) : Account {
    companion object {
        suspend fun open(client: Client, opened: Long): ByVersion {
            // With eight that change it all the time, somebody else is faster more often than usual.
            val account = client.version(NAME).retries(100)
            account.awaitCompareAndSet(null, mapOf("opened" to opened, "balance" to opened, "paid" to 0))
            return ByVersion(account)
        }

        @Suppress("UNCHECKED_CAST")
        private fun numbers(value: Any?) = value as Map<String, Long>
    }

    override suspend fun deduct(amount: Long): Boolean {
        // Asked again with what is there by then, if somebody else was faster. `null`: it is not covered.
        val written = account.awaitUpdate { value ->
            val books = numbers(value)
            val (balance, paid) = books.getValue("balance") - amount to books.getValue("paid") + amount
            if (balance < 0) null else books + mapOf("balance" to balance, "paid" to paid)
        }
        return written != null
    }

    override suspend fun books(): Books {
        val books = numbers(account.awaitRead()?.value())
        return Books(books.getValue("opened"), books.getValue("balance"), books.getValue("paid"))
    }
}

internal class Locked(client: Client, private val book: Book) : Account {
    private val lock = client.lock(NAME)

    override suspend fun deduct(amount: Long): Boolean {
        while (true) {
            val guard = lock.awaitAcquire()
            try {
                book.readAndWrite(amount, guard.token())?.let { return it }
            } finally {
                // The book has judged already: whether the lease has ended since the write does not matter.
                guard.awaitRelease()
            }
        }
    }

    override suspend fun books() = book.books()
}

internal class Unlocked(private val book: Book) : Account {
    /** Without a lock there is no token: all write as the same holder. */
    override suspend fun deduct(amount: Long) = book.readAndWrite(amount, 0) == true

    override suspend fun books() = book.books()
}

/** The account in a SQLite file: what is left, and every payment. */
internal class Book(file: String, opened: Long) : AutoCloseable {
    private val file = DriverManager.getConnection("jdbc:sqlite:$file?busy_timeout=60000")

    init {
        change {
            run("CREATE TABLE IF NOT EXISTS account (opened INTEGER, balance INTEGER, fence INTEGER)")
            run("CREATE TABLE IF NOT EXISTS payments (amount INTEGER)")
            val unlessItIsThere = "WHERE NOT EXISTS (SELECT * FROM account)"
            run("INSERT INTO account SELECT ?, ?, 0 $unlessItIsThere", opened, opened)
        }
    }

    /** Whether the amount was paid. `null`: a newer holder has come, and nothing is written. */
    suspend fun readAndWrite(amount: Long, token: Long): Boolean? {
        // Reading leaves the token too: an older holder that writes after this would be undone by what is made of it here.
        val read = "UPDATE account SET fence = ? WHERE fence <= ? RETURNING balance"
        val (balance) = row(read, token, token) ?: return null
        if (balance < amount) return false
        delay(MOMENT)
        // The balance and the payment are one change: a crash leaves both or neither.
        return change {
            val write = "UPDATE account SET balance = ? WHERE fence <= ?"
            if (run(write, balance - amount, token) == 0) return@change null
            run("INSERT INTO payments VALUES (?)", amount)
            true
        }
    }

    fun books(): Books {
        val paid = "(SELECT coalesce(sum(amount), 0) FROM payments)"
        val (opened, balance, paidOut) = row("SELECT opened, balance, $paid FROM account")!!
        return Books(opened, balance, paidOut)
    }

    override fun close() = file.close()

    private fun <R> change(body: () -> R): R {
        run("BEGIN IMMEDIATE")
        return runCatching(body).onSuccess { run("COMMIT") }.onFailure { run("ROLLBACK") }.getOrThrow()
    }

    private fun run(sql: String, vararg numbers: Long): Int = file.prepareStatement(sql).use { statement ->
        numbers.forEachIndexed { place, number -> statement.setLong(place + 1, number) }
        statement.executeUpdate()
    }

    /** The numbers of the only row, if there is one. */
    private fun row(sql: String, vararg numbers: Long): List<Long>? = file.prepareStatement(sql).use { statement ->
        numbers.forEachIndexed { place, number -> statement.setLong(place + 1, number) }
        statement.executeQuery().use { rows ->
            if (rows.next()) List(rows.metaData.columnCount) { rows.getLong(it + 1) } else null
        }
    }
}
