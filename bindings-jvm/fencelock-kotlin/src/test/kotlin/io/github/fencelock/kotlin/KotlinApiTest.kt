package io.github.fencelock.kotlin

import io.github.fencelock.ApiTest
import java.nio.file.Path
import org.junit.jupiter.api.Test

/** The public API of the Kotlin package is the one in its `api.txt`. */
class KotlinApiTest {
    @Test
    fun `the API is the listed one`() {
        // What is internal in Kotlin is public for the JVM.
        ApiTest.compare(Class.forName("io.github.fencelock.kotlin.ClientKt"), Path.of("api.txt"), listOf(".AwaitKt ", ".ProtectKt "))
    }
}
