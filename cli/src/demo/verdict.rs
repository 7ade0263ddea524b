//! What the show proved, and whether it all held.

use serde::Serialize;

use super::lease::Lease;
use super::shop::Books;

/// How the store's stall went.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum StoreStall {
    /// It did not come to it.
    #[default]
    Missing,
    /// The holder kept its lock through it and sold.
    Survived,
    /// The holder lost its lock, though the lease was longer than the stall.
    Lost,
    /// Not shown on this store, and why.
    Skipped(String),
}

/// The figures of the whole show.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(super) struct Verdict {
    /// Whether everything that was promised happened.
    pub held: bool,
    /// What did not.
    pub complaints: Vec<String>,
    pub seed: u64,
    pub pieces: u32,
    /// Without the lock: orders confirmed, and how many of them beyond the stock.
    pub sold_without_lock: u32,
    pub oversold_without_lock: u32,
    /// With it.
    pub sold: u32,
    pub oversold: u32,
    pub turned_away: u32,
    pub stale_writes_refused: u32,
    /// Those of them whose holder's guard still said "held": two held the lock at once.
    pub refused_while_held: u32,
    pub stale_writes_accepted: u32,
    /// Whether the write of the holder that was frozen was among those refused.
    pub frozen_write_refused: bool,
    /// Grants that followed one of another process.
    pub hand_overs: u32,
    pub p50_wait_ms: f64,
    pub p99_wait_ms: f64,
    /// The same without the waits into which a kill, a freeze or a stall fell.
    pub p99_calm_wait_ms: f64,
    /// From the misfortune of a holder to the next grant.
    pub after_kill_ms: Option<u64>,
    pub after_freeze_ms: Option<u64>,
    pub store_stall: StoreStall,
    #[serde(flatten)]
    pub lease: Lease,
    pub counter: i64,
    pub counter_target: i64,
    pub seconds: f64,
}

impl Verdict {
    /// Takes the orders of the act without the lock.
    pub(super) fn without_lock(&mut self, books: Books) {
        self.sold_without_lock = books.sold;
        self.oversold_without_lock = books.sold.saturating_sub(self.pieces);
    }

    /// Takes the orders of the act with the lock. A piece promised twice is oversold, too.
    pub(super) fn with_lock(&mut self, books: Books) {
        self.sold = books.sold;
        self.oversold = books.sold - books.pieces.min(self.pieces).min(books.sold);
        self.stale_writes_accepted = books.stale;
    }

    /// Compares the figures with what was promised.
    pub(super) fn judge(mut self) -> Self {
        let limit = self.lease.ttl_ms + self.lease.grace_ms;
        let mut complaints = Vec::new();
        let mut expect = |held: bool, complaint: &dyn Fn() -> String| {
            if !held {
                complaints.push(complaint());
            }
        };
        expect(self.oversold_without_lock > 0, &|| {
            "without the lock nothing was oversold: the race did not show".to_owned()
        });
        expect(self.sold == self.pieces, &|| {
            format!("with the lock {} of {} were sold", self.sold, self.pieces)
        });
        expect(self.oversold == 0, &|| format!("with the lock {} were oversold", self.oversold));
        expect(self.stale_writes_refused > 0, &|| "no stale write was refused".to_owned());
        // The shop's condition repairs what a lock that excludes nobody would spoil, so the sums alone prove no lock.
        expect(self.refused_while_held == 0, &|| {
            format!("{} times two workers held the lock at once", self.refused_while_held)
        });
        expect(self.frozen_write_refused, &|| {
            "the write of the frozen holder was not refused".to_owned()
        });
        expect(self.stale_writes_accepted == 0, &|| {
            format!("{} stale writes were accepted", self.stale_writes_accepted)
        });
        expect(self.hand_overs > 0, &|| "the lock never changed hands".to_owned());
        for (event, after) in [("kill", self.after_kill_ms), ("freeze", self.after_freeze_ms)] {
            expect(after.is_some_and(|after| after <= limit), &|| match after {
                Some(after) => {
                    format!("the next grant came {after} ms after the {event}, over {limit} ms")
                }
                None => format!("no grant was seen after the {event} of a holder"),
            });
        }
        expect(self.store_stall != StoreStall::Missing, &|| {
            "the store was never stalled".to_owned()
        });
        expect(self.store_stall != StoreStall::Lost, &|| {
            "the holder lost its lock to a stall shorter than its lease".to_owned()
        });
        expect(self.counter == self.counter_target, &|| {
            format!("the counter ended at {} instead of {}", self.counter, self.counter_target)
        });
        self.held = complaints.is_empty();
        self.complaints = complaints;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn good() -> Verdict {
        let mut verdict = Verdict {
            pieces: 1000,
            stale_writes_refused: 1,
            frozen_write_refused: true,
            hand_overs: 900,
            after_kill_ms: Some(2980),
            after_freeze_ms: Some(1990),
            store_stall: StoreStall::Survived,
            counter: 1000,
            counter_target: 1000,
            ..Verdict::default()
        };
        verdict.without_lock(Books { sold: 1187, pieces: 800, stale: 0, stock: -2 });
        verdict.with_lock(Books { sold: 1000, pieces: 1000, stale: 0, stock: 0 });
        verdict
    }

    #[test]
    fn a_good_show_holds() {
        let verdict = good().judge();
        assert_eq!((verdict.held, verdict.complaints.len()), (true, 0), "{verdict:?}");
        let skipped = StoreStall::Skipped("a reason".to_owned());
        assert!(Verdict { store_stall: skipped, ..good() }.judge().held);
    }

    #[test]
    fn each_broken_promise_is_told_alone() {
        let broken = [
            Verdict { oversold_without_lock: 0, ..good() },
            Verdict { sold: 999, ..good() },
            Verdict { oversold: 1, ..good() },
            Verdict { stale_writes_refused: 0, ..good() },
            Verdict { refused_while_held: 1, ..good() },
            Verdict { frozen_write_refused: false, ..good() },
            Verdict { stale_writes_accepted: 1, ..good() },
            Verdict { hand_overs: 0, ..good() },
            Verdict { after_kill_ms: Some(3001), ..good() },
            Verdict { after_kill_ms: None, ..good() },
            Verdict { after_freeze_ms: Some(3001), ..good() },
            Verdict { store_stall: StoreStall::Missing, ..good() },
            Verdict { store_stall: StoreStall::Lost, ..good() },
            Verdict { counter: 999, ..good() },
            Verdict { counter: 1001, ..good() },
        ];
        for verdict in broken {
            let verdict = verdict.judge();
            assert_eq!((verdict.held, verdict.complaints.len()), (false, 1), "{verdict:?}");
        }
    }

    #[test]
    fn a_piece_promised_twice_is_oversold() {
        let mut verdict = good();
        verdict.with_lock(Books { sold: 1000, pieces: 998, stale: 0, stock: 2 });
        assert_eq!(verdict.oversold, 2);
        verdict.with_lock(Books { sold: 1003, pieces: 1003, stale: 0, stock: -3 });
        assert_eq!(verdict.oversold, 3);
        assert!(!verdict.judge().held);
    }
}
