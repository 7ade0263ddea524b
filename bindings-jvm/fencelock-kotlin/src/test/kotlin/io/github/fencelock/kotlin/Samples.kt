package io.github.fencelock.kotlin

import io.github.fencelock.Released
import io.github.fencelock.Why
import kotlin.time.Duration.Companion.days
import kotlin.time.Duration.Companion.seconds
import kotlinx.coroutines.flow.first

/** The examples of the documentation. */
object Samples {
    private const val order = "42"

    private fun charge(order: String, token: Long) = check(token > 0) { order }

    suspend fun service(url: String) {
        Fencelock.connect(url).use { client ->
            client.lock("orders:42").withLock { guard -> charge(order, guard.token) }
        }
    }

    suspend fun fiveLines() {
        Fencelock.connect("memory:").use { client -> // or "redis://127.0.0.1", "sqlite:locks.db"
            client.lock("orders:42").withLock { guard ->
                println("charging order 42 with token ${guard.token}")
            }
        }
    }

    suspend fun options() {
        val options = ClientOptions().ttl(10.seconds).app("billing")
        Fencelock.connect("memory:", options).use { client ->
            client.lock("orders:42").fair(false).label("night run").withLock { println(it) }
        }
    }

    suspend fun guard() {
        Fencelock.connect("memory:").use { client ->
            val guard = client.lock("orders:42").ttl(30.seconds).acquire(5.seconds)
            check(guard.isHeld)
            check(client.lock("orders:42").tryAcquire() == null)
            check(guard.release() == Released.RELEASED)
        }
    }

    suspend fun scopes() {
        Fencelock.connect("memory:").use { client ->
            val scope = client.scope()
            scope.lock("ledger").withLock { outer ->
                scope.lock("ledger").withLock { inner -> check(inner.token == outer.token) }
            }
        }
    }

    suspend fun election() {
        Fencelock.connect("memory:").use { client ->
            val election = client.election("scheduler").label("node-1")
            election.whileLeading { leadership ->
                val leader = election.observe().first { it != null }
                check(leader?.token()?.asLong == leadership.token)
            }
            check(election.leader() == null)
        }
    }

    suspend fun job() {
        Fencelock.connect("memory:").use { client ->
            val nightly = client.job("nightly", 1.days)
            check(nightly.withRun { run -> println("cleaning up under token ${run.token}") })
            val skipped = { skipped: Skipped -> println("nothing to do: ${skipped.why}") }
            check(!nightly.withRun(skipped) { println("once a night is enough") })
            val again = nightly.startOrWhy()
            check(again is Skipped && again.why == Why.DONE)
        }
    }

    suspend fun version() {
        Fencelock.connect("memory:").use { client ->
            val balance = client.version("balance:42")
            balance.update { value -> ((value as Long?) ?: 0L) + 100 }
            val taken = balance.update { value -> (value as Long - 130).takeIf { it >= 0 } }
            check(taken == null) { "nothing is written if there is nothing to write" }
            check(balance.read()?.value() == 100L)
        }
    }
}
