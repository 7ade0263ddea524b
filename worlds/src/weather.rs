//! How bad the network of a world is.

use std::time::Duration;

use fencelock_sim::Dice;

/// Delays and faults of every link. Chances are in a thousand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Weather {
    /// The shortest and longest time a message is under way.
    pub delay: (Duration, Duration),
    /// Messages that take far longer: chance, and up to how long.
    pub late: (u64, Duration),
    /// Requests and replies that never arrive.
    pub lost: u64,
    /// Notices that never arrive.
    pub notices_lost: u64,
    /// Notices that arrive twice.
    pub notices_doubled: u64,
    /// Requests that arrive twice. A doubled Take may be held by nobody for one ttl, so such worlds are marked.
    pub doubled: u64,
    /// Requests the server refuses without carrying them out.
    pub refused: u64,
    /// Batches that break off in the middle.
    pub torn: u64,
    /// Whether messages of one client overtake each other.
    pub reorders: bool,
}

impl Weather {
    /// Nothing is lost, nothing overtakes: only delays.
    pub fn calm(shortest: Duration, longest: Duration) -> Self {
        Self {
            delay: (shortest, longest),
            late: (0, Duration::ZERO),
            lost: 0,
            notices_lost: 0,
            notices_doubled: 0,
            doubled: 0,
            refused: 0,
            torn: 0,
            reorders: false,
        }
    }

    /// How long one message is under way.
    pub fn travel(&self, dice: &mut Dice) -> Duration {
        let (shortest, longest) = match self.late {
            (chance, longest) if dice.chance(chance) => (self.delay.1, longest.max(self.delay.1)),
            _ => self.delay,
        };
        Duration::from_nanos(dice.between(shortest.as_nanos() as u64, longest.as_nanos() as u64))
    }

    /// The longest a request and its answer can take together.
    pub fn round_trip(&self) -> Duration {
        self.latest() * 2
    }

    /// How long a packet is under way at most.
    pub fn latest(&self) -> Duration {
        self.delay.1.max(if self.late.0 > 0 { self.late.1 } else { Duration::ZERO })
    }
}
