package io.github.fencelock.kotlin

import io.github.fencelock.Stores
import io.github.fencelock.Witness
import java.util.stream.Stream
import org.junit.jupiter.params.ParameterizedTest
import org.junit.jupiter.params.provider.Arguments
import org.junit.jupiter.params.provider.MethodSource

/** Processes that end while coroutines hold locks. */
class ExitTest {
    companion object {
        @JvmStatic
        fun ends(): Stream<Arguments> = Stores.shared().flatMap { url ->
            Stream.of("return" to 0, "exit" to 3, "throw" to 1, "wait" to 143).map { (how, code) -> Arguments.of(url, how, code) }
        }
    }

    @ParameterizedTest
    @MethodSource("ends")
    fun `what bodies hold at the end is released`(url: String, how: String, code: Int) {
        Witness(KotlinHolder::class.java.name, url, "${Stores.name()}/", 3, 40, how).use { witness ->
            if (how == "wait") witness.terminate()
            witness.sees("Kotlin: $how on ${url.substringBefore(':')}", code)
        }
    }
}
