package io.github.fencelock.kotlin

import io.github.fencelock.ClientOptions
import io.github.fencelock.Reason
import io.github.fencelock.Released
import io.github.fencelock.Skipped
import kotlin.time.Duration.Companion.days
import kotlin.time.Duration.Companion.seconds
import kotlinx.coroutines.flow.first

/** The examples of the documentation. */
object Samples {
    private const val order = "42"

    private fun charge(order: String, token: Long) = check(token > 0) { order }

    suspend fun service(url: String) {
        awaitConnect(url).useSuspending { client ->
            client.lock("orders:42").withLockSuspending { guard -> charge(order, guard.token()) }
        }
    }

    suspend fun fiveLines() {
        awaitConnect("memory:").useSuspending { client -> // or "redis://127.0.0.1", "sqlite:locks.db"
            client.lock("orders:42").withLockSuspending { guard ->
                println("charging order 42 with token ${guard.token()}")
            }
        }
    }

    suspend fun options() {
        val options = ClientOptions().ttl(10.seconds).app("billing")
        awaitConnect("memory:", options).useSuspending { client ->
            client.lock("orders:42").fair(false).info("night run").withLockSuspending { println(it) }
        }
    }

    suspend fun guard() {
        awaitConnect("memory:").useSuspending { client ->
            val guard = client.lock("orders:42").ttl(30.seconds).awaitAcquire(5.seconds)
            check(guard.isHeld)
            check(client.lock("orders:42").awaitTryAcquire() == null)
            check(guard.awaitRelease() == Released.RELEASED)
        }
    }

    suspend fun scopes() {
        awaitConnect("memory:").useSuspending { client ->
            val scope = client.scope()
            scope.lock("ledger").withLockSuspending { outer ->
                scope.lock("ledger").withLockSuspending { inner -> check(inner.token() == outer.token()) }
            }
        }
    }

    suspend fun election() {
        awaitConnect("memory:").useSuspending { client ->
            val election = client.election("scheduler").info("node-1")
            election.whileLeading { guard ->
                val leader = election.leaderFlow().first { it != null }
                check(leader?.token()?.asLong == guard.token())
            }
            check(election.awaitLeader() == null)
        }
    }

    suspend fun job() {
        awaitConnect("memory:").useSuspending { client ->
            val nightly = client.job("nightly", 1.days)
            check(nightly.withRunSuspending { run -> println("cleaning up under token ${run.token()}") })
            val skipped = { skipped: Skipped -> println("nothing to do: ${skipped.reason()}") }
            check(!nightly.withRunSuspending(skipped) { println("once a night is enough") })
            val again = nightly.awaitStart()
            check(again is Skipped && again.reason() == Reason.DONE)
        }
    }

    suspend fun version() {
        awaitConnect("memory:").useSuspending { client ->
            val balance = client.version("balance:42")
            balance.awaitUpdate { value -> ((value as Long?) ?: 0L) + 100 }
            val taken = balance.awaitUpdate { value -> (value as Long - 130).takeIf { it >= 0 } }
            check(taken == null) { "nothing is written if there is nothing to write" }
            check(balance.awaitRead()?.value() == 100L)
        }
    }
}
