// The last lamps of a shop, sold by eight clerks at once: with no lock, and under a lock.
//
// The first URL is the shop's, a Redis server. The second is the store of the locks, by default the same.
//
// Selling is looking at the stock, taking a moment (a price, a payment), and writing it down. Whoever else looks in that moment
// sells the same lamp again. inventory.rs tells more.

import io.github.fencelock.kotlin.awaitConnect
import io.github.fencelock.kotlin.useSuspending
import io.github.fencelock.kotlin.withLockSuspending
import java.io.IOException
import java.net.Socket
import java.net.URI
import kotlin.time.Duration.Companion.milliseconds
import kotlin.time.measureTimedValue
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.coroutineScope
import kotlinx.coroutines.delay
import kotlinx.coroutines.launch
import kotlinx.coroutines.runBlocking

private const val LAMPS = 50
private const val CUSTOMERS = 80
private const val CLERKS = 8
private val MOMENT = 2.milliseconds
private const val STOCK = "fencelock-example:kotlin:stock"
private const val SOLD = "fencelock-example:kotlin:sold"

/** One clerk: a program of its own in a real shop, with its own connections. */
private suspend fun clerk(url: String, store: String, locked: Boolean) {
    awaitConnect(store).useSuspending { locks ->
        Shop(url).use { shop ->
            repeat(CUSTOMERS / CLERKS) {
                if (locked) {
                    locks.lock("fencelock-example:kotlin:lamps").withLockSuspending { lookAndWrite(shop) }
                } else {
                    lookAndWrite(shop)
                }
            }
        }
    }
}

private suspend fun lookAndWrite(shop: Shop) {
    val stock = shop.command("GET", STOCK).toInt()
    if (stock < 1) return
    delay(MOMENT)
    shop.command("SET", STOCK, "${stock - 1}")
    shop.command("INCR", SOLD)
}

private suspend fun day(url: String, store: String, locked: Boolean): Int = Shop(url).use { shop ->
    shop.command("MSET", STOCK, "$LAMPS", SOLD, "0")
    coroutineScope {
        repeat(CLERKS) { launch(Dispatchers.IO) { clerk(url, store, locked) } }
    }
    val sold = shop.command("GET", SOLD).toInt()
    shop.command("DEL", STOCK, SOLD)
    sold
}

fun main(words: Array<String>): Unit = runBlocking {
    val url = words.firstOrNull() ?: "redis://127.0.0.1"
    val store = words.getOrNull(1) ?: url
    println("$LAMPS lamps, $CUSTOMERS customers, $CLERKS clerks")
    for (locked in listOf(false, true)) {
        val (sold, took) = measureTimedValue { day(url, store, locked) }
        val over = maxOf(0, sold - LAMPS)
        println("%-8s sold %3d, oversold %3d, %d ms".format(if (locked) "lock" else "no lock", sold, over, took.inWholeMilliseconds))
    }
}

/** The shop's books, on a Redis server: as much of a client as they need. */
private class Shop(url: String) : AutoCloseable {
    private val address = URI(url)
    private val socket = Socket(address.host, address.port.takeIf { it > 0 } ?: 6379)
    private val answers = socket.getInputStream().bufferedReader()

    fun command(vararg words: String): String {
        val request = words.joinToString("", "*${words.size}\r\n") { "$${it.length}\r\n$it\r\n" }
        socket.getOutputStream().write(request.toByteArray())
        val head = answers.readLine()
        if (head.startsWith("-")) throw IOException(head)
        return if (head.startsWith("$")) answers.readLine() else head.drop(1)
    }

    override fun close() = socket.close()
}
