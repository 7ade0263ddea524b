//! The holders and waiters of a lock, and who may hold beside whom.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::micros;
use crate::port::limits::TICKET_LIFE;
use crate::port::{HolderView, Mode, OwnerId, WaiterView};

/// A hold with an end time.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Holder {
    /// The attempt that was granted.
    pub owner: OwnerId,
    /// How it holds.
    pub mode: Mode,
    /// The first token drawn with it.
    pub token: u64,
    /// When it was granted.
    pub since: u64,
    /// When it ends.
    pub ends: u64,
    /// How many permits it holds.
    pub permits: u32,
    /// The text by which it describes itself.
    pub info: Arc<str>,
}

impl Holder {
    /// Somebody who is not fencelock's: who it is, and since and until when it holds.
    pub fn foreign(since: u64, ends: u64, info: Arc<str>) -> Self {
        let (owner, mode) = (OwnerId::NOBODY, Mode::Exclusive);
        Self { owner, mode, token: 0, since, ends, permits: 1, info }
    }

    /// Whether it is not fencelock's.
    pub fn is_foreign(&self) -> bool {
        self.owner == OwnerId::NOBODY
    }

    pub(super) fn view(&self, now: u64, most: u64) -> HolderView {
        HolderView {
            mode: self.mode,
            token: (!self.is_foreign()).then(|| crate::fence::Token::new(self.token)),
            left: Some(left(self.ends.min(most), now)),
            held_for: Some(left(now, self.since)),
            info: self.info.clone(),
            owner: (!self.is_foreign()).then_some(self.owner),
        }
    }
}

/// A place in the queue.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Ticket {
    /// The attempt that waits.
    pub owner: OwnerId,
    /// How it wants to hold.
    pub mode: Mode,
    /// Of how many permits it wants some.
    pub limit: u32,
    /// How many it wants.
    pub permits: u32,
    /// Where its client listens.
    pub channel: Arc<str>,
    /// The lease it wants.
    pub ttl: u64,
    /// How many tokens it wants to draw.
    pub block: u32,
    /// When it joined.
    pub since: u64,
    /// When it was last heard of.
    pub refreshed: u64,
    /// How often an open lock was taken past it.
    pub passed: u32,
    /// The text by which it describes itself.
    pub info: Arc<str>,
}

impl Ticket {
    pub(super) fn live(&self, now: u64) -> bool {
        now < self.refreshed + micros(TICKET_LIFE)
    }

    pub(super) fn view(&self, now: u64) -> WaiterView {
        let waiting_for = left(now, self.since);
        WaiterView { mode: self.mode, info: self.info.clone(), waiting_for }
    }
}

/// From `now` until `ends`.
pub(super) fn left(ends: u64, now: u64) -> Duration {
    Duration::from_micros(ends.saturating_sub(now))
}

/// Whether one more may hold in this mode beside those who do; of permits, so many of as many as the limit.
pub(super) fn admits(holders: &[Holder], mode: Mode, limit: u32, permits: u32) -> bool {
    match mode {
        Mode::Exclusive | Mode::Write => holders.is_empty(),
        // A writer that waits is not passed: later readers stand behind it in the queue.
        Mode::Read => holders.iter().all(|holder| holder.mode != Mode::Write),
        Mode::Permit => {
            let held: u64 = holders.iter().map(|holder| u64::from(holder.permits)).sum();
            held + u64::from(permits) <= u64::from(limit)
        }
    }
}
