//! Pauses between tries of the same.

use std::time::Duration;

use super::RuntimeHandle;

/// Each pause is twice as long as the one before, up to a second.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Backoff(Duration);

impl Backoff {
    /// The first pause.
    pub(crate) const FIRST: Duration = Duration::from_millis(10);
    /// The last ones.
    pub(crate) const LONGEST: Duration = Duration::from_secs(1);

    pub(crate) fn new() -> Self {
        Self(Self::FIRST)
    }

    /// The next pause.
    pub(crate) fn next(&mut self) -> Duration {
        self.next_up_to(Self::LONGEST)
    }

    /// The next pause, where they grow to another length.
    pub(crate) fn next_up_to(&mut self, longest: Duration) -> Duration {
        let pause = self.0;
        self.0 = longest.min(pause * 2);
        pause
    }

    /// A pause of at least half that length, never in step with others.
    pub(crate) fn spread(pause: Duration, runtime: &RuntimeHandle) -> Duration {
        let mut dice = [0; 2];
        runtime.random(&mut dice);
        pause / 2 + pause / 2 * u32::from(u16::from_le_bytes(dice)) / 0x1_0000
    }
}

impl Default for Backoff {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest() {
        let mut backoff = Backoff::new();
        let pauses: Vec<_> = (0..9).map(|_| backoff.next().as_millis()).collect();
        assert_eq!(pauses, [10, 20, 40, 80, 160, 320, 640, 1000, 1000]);
        let mut short = Backoff::new();
        let longest = Duration::from_millis(25);
        let pauses: Vec<_> = (0..4).map(|_| short.next_up_to(longest).as_millis()).collect();
        assert_eq!(pauses, [10, 20, 25, 25]);
    }
}
