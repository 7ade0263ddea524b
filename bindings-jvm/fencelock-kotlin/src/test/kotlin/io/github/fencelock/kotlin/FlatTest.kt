package io.github.fencelock.kotlin

import io.github.fencelock.Client
import io.github.fencelock.Stores
import io.github.fencelock.Weight
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Tag
import org.junit.jupiter.params.ParameterizedTest
import org.junit.jupiter.params.provider.MethodSource
import java.lang.management.ManagementFactory
import javax.management.ObjectName
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.coroutineScope
import kotlinx.coroutines.launch
import kotlinx.coroutines.runBlocking

/** 100,000 bodies under locks, a tenth in a hurry: memory, descriptors, threads and coroutines stay as they are. */
@Tag("full")
class FlatTest {
    private companion object {
        const val FLIGHT = 64
    }

    private suspend fun bodies(client: Client, count: Int) {
        val name = Stores.name()
        coroutineScope {
            repeat(FLIGHT) { number ->
                launch(Dispatchers.Default) {
                    repeat(count / FLIGHT) { client.lock("$name-$number").withLockSuspending { } }
                }
            }
        }
        client.isAtRest()
    }

    /** The number of coroutines alive, and of the continuations that wait in them. */
    private fun coroutines(): Long {
        val histogram = ManagementFactory.getPlatformMBeanServer().invoke(
            ObjectName("com.sun.management:type=DiagnosticCommand"),
            "gcClassHistogram",
            arrayOf(arrayOf<String>()),
            arrayOf("[Ljava.lang.String;"),
        )
        val alive = Regex("""\d+: +(\d+) +\d+ +kotlinx\.coroutines\.\w*(Coroutine|ContinuationImpl)\b""")
        return alive.findAll(histogram as String).sumOf { it.groupValues[1].toLong() }
    }

    @ParameterizedTest
    @MethodSource("io.github.fencelock.Stores#all")
    fun `many bodies leave nothing`(url: String) = runBlocking {
        awaitConnect(url).useSuspending { client ->
            bodies(client, FLIGHT)
            val before = coroutines()
            assertTrue(before > 0, "this one is one")
            Weight.staysFlat("coroutines on ${url.substringBefore(':')}") { times -> runBlocking { bodies(client, times) } }
            val after = coroutines()
            assertTrue(after <= before, "there were $before coroutines, there are $after")
        }
    }
}
