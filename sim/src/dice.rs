//! Seeded randomness (splitmix64): enough for schedules and faults, never for secrets.

/// A generator whose whole future is its seed.
#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    /// A generator; similar seeds give unrelated numbers.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// A generator of its own, so that what one part draws does not move what another sees.
    pub fn fork(&mut self) -> Self {
        Self(mix(self.draw()))
    }

    /// A number from 0 to `bound - 1`; 0 if `bound` is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.draw()) * u128::from(bound)) >> 64) as u64
    }

    /// A number from `low` to `high`, both possible.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high.saturating_sub(low) + 1)
    }

    /// True in so many of a thousand cases.
    pub fn chance(&mut self, per_mille: u64) -> bool {
        self.below(1000) < per_mille
    }

    /// One of several.
    pub fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u64) as usize]
    }

    /// Fills `bytes`.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            chunk.copy_from_slice(&self.draw().to_le_bytes()[..chunk.len()]);
        }
    }
}

/// Scatters the bits of `value`.
pub(super) fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}
