//! What happens in the show, as `--json` prints it. The workers are counted from 1 here.

use serde::Serialize;

use super::verdict::Verdict;

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub(super) enum Event {
    /// The shop is open.
    Opened { pieces: u32, buyers: u32, workers: usize, seed: u64, ttl_ms: u64, store: String },
    /// The first act begins.
    WithoutLock { think_us: u64 },
    /// A sale without the lock; `again`: the piece had been sold before.
    Raced { worker: usize, buyer: u32, piece: i64, again: bool },
    /// The first act's books: more orders than pieces, or `oversold` is 0 and it has to be tried again.
    RaceEnded { sold: u32, pieces: u32, oversold: u32 },
    /// The second act begins.
    WithLock { store: String, ttl_ms: u64 },
    /// A worker stands in line.
    Waiting { worker: usize, buyer: u32 },
    /// It got the lock.
    Granted { worker: usize, buyer: u32, token: u64, waited_us: u64, left_ms: u64 },
    /// It still holds the lock.
    Holding { worker: usize, left_ms: u64 },
    /// It is about to write.
    Writing { worker: usize },
    /// It has sold a piece.
    Sold { worker: usize, buyer: u32, piece: i64, token: u64, sold: u32 },
    /// The shelf was empty.
    TurnedAway { worker: usize, buyer: u32 },
    /// The shop refused its write, the so many-th of all. `knew`: its guard, asked afterwards, said that the lock is lost.
    Refused { worker: usize, buyer: u32, token: u64, newest: u64, knew: bool, refused: u32 },
    /// It saw in time that its lock is lost, and did not write.
    GaveUp { worker: usize, buyer: u32, token: u64 },
    /// It is between two buyers.
    Idle { worker: usize },
    /// The holder was killed.
    Killed { worker: usize, pid: i32, token: u64 },
    /// Another one got the lock after a holder's misfortune.
    TookOver { worker: usize, from: usize, token: u64, after_ms: u64 },
    /// A new process for one that was killed.
    Replaced { worker: usize, pid: i32 },
    /// The store was made to answer nobody.
    Stalled { worker: usize, for_ms: u64, how: &'static str },
    /// It answers again.
    StallEnded { worker: usize, held: bool },
    /// A part of the show that this store does not allow.
    Skipped { what: &'static str, why: String },
    /// A worker was stopped between its last look at the guard and its write.
    Frozen { worker: usize, pid: i32, token: u64 },
    /// It runs again, and will write without another look.
    Thawed { worker: usize, token: u64 },
    /// The third act begins.
    Counting { tasks: u32, times: u32, workers: usize },
    /// It ends.
    Counted { counter: i64, target: i64 },
    /// The end.
    Verdict(Box<Verdict>),
}
