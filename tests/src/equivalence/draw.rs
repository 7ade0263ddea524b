//! How many cases are drawn, and from what seed.

use std::hash::{BuildHasher, Hasher, RandomState};

/// So many cases from a fixed seed, the same every time: a failure is found again. With `FENCELOCK_FULL=1` twenty times as
/// many, from a seed that is drawn and printed; `FENCELOCK_SEED` repeats it.
pub fn draw(fixed: u8, cases: u32) -> ([u8; 32], u32) {
    if !crate::in_full() {
        return ([fixed; 32], cases);
    }
    let given = std::env::var("FENCELOCK_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = given.unwrap_or_else(|| RandomState::new().build_hasher().finish());
    println!("FENCELOCK_SEED={seed}");
    let mut bytes = [fixed; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    (bytes, cases * 20)
}
