//! The state that a client has read from the rows it waits at.

use std::collections::BTreeMap;
use std::time::Duration;

use super::told::Told;
use crate::port::{Instant, LockKey, Notice};

/// A waiter is seen once a second, when its ticket is refreshed. One that was not seen for so long has gone, or has the lock.
const GONE: Duration = Duration::from_secs(3);
/// Of so many names it is remembered what was read; of more, only where one of ours waits.
const MOST: usize = 4096;

/// The rows, by their locks.
#[derive(Default)]
pub(super) struct Heard(BTreeMap<LockKey, Row>);

struct Row {
    /// The newest version that was read.
    seen: u64,
    /// How many wait there before the first of ours; `None` if none of ours waits.
    ahead: Option<usize>,
    /// When that was seen.
    at: Instant,
}

impl Heard {
    /// Where any of ours waits, and how many are before the one that is nearest to its turn.
    pub(super) fn waits_at(&self, now: Instant) -> (Vec<LockKey>, usize) {
        let waits = self.0.iter();
        let waits = waits.filter(|(_, row)| row.ahead.is_some() && now.since(row.at) < GONE);
        let nearest = waits.clone().filter_map(|(_, row)| row.ahead).min();
        (waits.map(|(lock, _)| lock.clone()).collect(), nearest.unwrap_or(usize::MAX))
    }

    /// So many are before the first of ours that waits there. Answers whether that is new.
    pub(super) fn moves(&mut self, lock: &LockKey, ahead: usize) -> bool {
        let waits = self.0.get_mut(lock).and_then(|row| row.ahead.as_mut());
        waits.is_some_and(|known| std::mem::replace(known, ahead) != ahead)
    }

    /// So many wait before the first of ours at a row that was read in this version, or none of ours waits. Answers whether ours has begun to
    /// wait.
    pub(super) fn expect(
        &mut self,
        lock: &LockKey,
        version: u64,
        ahead: Option<usize>,
        at: Instant,
    ) -> bool {
        let new = Row { seen: version, ahead, at };
        if let Some(row) = self.0.get_mut(lock) {
            let former = std::mem::replace(row, new).ahead;
            return ahead.is_some() && former.is_none();
        }
        if ahead.is_none() {
            return false;
        }
        if self.0.len() >= MOST {
            self.0.retain(|_, row| row.ahead.is_some());
        }
        self.0.insert(lock.clone(), new);
        true
    }

    /// The notices in the row for this client that it has not read yet.
    pub(super) fn read(
        &mut self,
        lock: &LockKey,
        version: u64,
        told: &[Told],
        channel: &str,
    ) -> Vec<Notice> {
        let Some(row) = self.0.get_mut(lock) else { return Vec::new() };
        let new = told.iter().flat_map(|told| told.after(row.seen, channel)).collect();
        row.seen = version.max(row.seen);
        new
    }
}
