package io.github.fencelock.kotlin

import io.github.fencelock.Client
import io.github.fencelock.Holder
import java.util.concurrent.CountDownLatch
import kotlinx.coroutines.DelicateCoroutinesApi
import kotlinx.coroutines.GlobalScope
import kotlinx.coroutines.awaitCancellation
import kotlinx.coroutines.launch
import kotlinx.coroutines.runBlocking

/** As [Holder], with bodies of coroutines. */
object KotlinHolder {
    private suspend fun Client.hold(prefix: String, number: Int, held: CountDownLatch) {
        val body: suspend () -> Unit = {
            held.countDown()
            awaitCancellation()
        }
        val name = "$prefix$number"
        when (number % 4) {
            1 -> writeLock(name).withLockSuspending { body() }
            2 -> semaphore(name, 1).withLockSuspending { body() }
            3 -> election(name).whileLeading { body() }
            else -> lock(name).withLockSuspending { body() }
        }
    }

    @OptIn(DelicateCoroutinesApi::class)
    @JvmStatic
    fun main(words: Array<String>) {
        val (clients, each) = words[2].toInt() to words[3].toInt()
        val held = CountDownLatch(clients * each)
        repeat(clients) { nth ->
            val client = runBlocking { awaitConnect(words[0]) }
            repeat(each) { GlobalScope.launch { client.hold(words[1], nth * each + it, held) } }
        }
        held.await()
        Holder.part(clients * each, words[4])
    }
}
