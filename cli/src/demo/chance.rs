//! Numbers that only look random: the same seed, the same numbers.

/// The generator `SplitMix64`.
pub(super) struct Chance(u64);

impl Chance {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`, which is small enough that its uneven odds do not show.
    pub(super) fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// Somewhere between half and one and a half times `middle`.
    pub(super) fn around(&mut self, middle: u64) -> u64 {
        middle / 2 + self.below(middle.max(1))
    }

    /// The numbers from 1 to `last` in some order.
    pub(super) fn shuffled(&mut self, last: u32) -> Vec<u32> {
        let mut numbers: Vec<u32> = (1..=last).collect();
        for position in (1..numbers.len()).rev() {
            numbers.swap(position, self.below(position as u64 + 1) as usize);
        }
        numbers
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_fixes_the_order_and_loses_nobody() {
        let (one, two) = (Chance::new(7).shuffled(1400), Chance::new(7).shuffled(1400));
        assert_eq!(one, two);
        assert_ne!(one, Chance::new(8).shuffled(1400));
        let mut sorted = one;
        sorted.sort_unstable();
        assert!(sorted.into_iter().eq(1..=1400));
    }
}
