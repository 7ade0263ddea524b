//! What conductor and workers tell each other: one JSON object per line, orders down, reports up.

use std::path::PathBuf;

use fencelock::Code;
use serde::{Deserialize, Serialize};

/// The first line a worker reads. It travels by pipe, so that a password in the URL shows in no list of processes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Setup {
    /// The store of the lock.
    pub url: String,
    /// The shop's database.
    pub shop: PathBuf,
    /// The name of the lock.
    pub lock: String,
    /// Length of the lease.
    pub ttl_ms: u64,
}

/// What the conductor asks of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "order", rename_all = "snake_case")]
pub(super) enum Order {
    /// Sell one piece to a buyer, who looks around before the sale and thinks in the middle of it.
    Sell { buyer: u32, browse_us: u64, think_us: u64, way: Way },
    /// Write now, without another look at the guard: ends the pause of [`Way::Poised`].
    Proceed,
    /// Add one to the counter, `times` times in each of `tasks` tasks.
    Count { tasks: u32, times: u32 },
}

/// How a piece is sold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Way {
    /// With nothing that keeps the others out.
    Unlocked,
    /// Under the lock, its token in the write.
    Locked,
    /// Like `Locked`, but between the last look at the guard and the write it waits for [`Order::Proceed`].
    Poised,
}

/// What a worker tells.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "report", rename_all = "snake_case")]
pub(super) enum Report {
    /// Connected to the store and the shop.
    Ready,
    /// Stands in line for the lock.
    Waiting { buyer: u32 },
    /// Got the lock.
    Granted { buyer: u32, token: u64, waited_us: u64, left_ms: u64 },
    /// Has looked at the guard for the last time and waits for [`Order::Proceed`].
    Poised { buyer: u32, token: u64, left_ms: u64 },
    /// Still holds the lock, for this long unless it is renewed.
    Holding { left_ms: u64 },
    /// Is about to write.
    Writing,
    /// The sale is in the shop's database. No token: there was no lock.
    Sold { buyer: u32, piece: i64, token: Option<u64> },
    /// The shelf was empty.
    SoldOut { buyer: u32 },
    /// The shop refused the write, for it has seen a newer token. `knew`: the guard, asked afterwards, said so too.
    Refused { buyer: u32, token: u64, newest: u64, knew: bool },
    /// The guard said in time that the lock is lost, so nothing was written.
    GaveUp { buyer: u32, token: u64 },
    /// Has given the lock back, or had none.
    Done,
    /// Has counted; so many writes were refused and done again, and at so many of them the guard still said "held".
    Counted { refused: u32, refused_while_held: u32 },
    /// Cannot go on.
    Failed { code: Code, message: String },
}
