package io.github.fencelock.kotlin

import io.github.fencelock.ShopTest
import io.github.fencelock.Stores
import org.junit.jupiter.api.Test

/** The example that is a program, in Kotlin. */
internal class KotlinShopTest {
    @Test
    fun `it oversells without a lock only`() {
        ShopTest.sells("InventoryKt", Stores.redis().url())
    }
}
