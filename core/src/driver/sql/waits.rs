//! Looks of a client that waits where no notice reaches it: on MySQL, and on PostgreSQL behind a pooler that keeps no sessions. It reads the rows it
//! waits at, at first often, then less often. That takes no connection of its own, and a server that is full, another user or a proxy changes
//! nothing.

use std::collections::BTreeMap;
use std::sync::Weak;
use std::time::Duration;

use super::dialect::Dialect;
use super::link::Link;
use crate::driver::record::Record;
use crate::port::backoff::Backoff;
use crate::port::limits::TICKET_LIFE;
use crate::port::{Instant, LockKey};

/// The pause between two looks of the one who is next: an eighth of the time for which its queue has not moved, within these bounds. So a
/// hand-over takes an eighth longer than the hold, and a lock that is held for long costs few looks.
const OF_NEXT: (Duration, Duration) = (Duration::from_millis(5), Duration::from_millis(50));
const PART_OF_WAIT: u32 = 8;
/// The longest pause of any.
const LONGEST: Duration = Duration::from_secs(1);
/// A waiter is seen when its ticket is refreshed. One that was not seen for so long has gone, or has the lock.
const GONE: Duration = TICKET_LIFE;
/// Of so many names it is remembered what was read; of more, only where one of ours waits.
const MOST: usize = 4096;

/// The state that a client has read from the rows it waits at.
#[derive(Default)]
pub(in crate::driver) struct Waits {
    rows: BTreeMap<LockKey, Waited>,
    /// Whether a task looks.
    polls: bool,
    /// When one of ours began to wait, came nearer to its turn or had it.
    moved: Instant,
}

struct Waited {
    /// The newest version that was read, where notices lie in the row.
    #[cfg_attr(not(feature = "mysql"), allow(dead_code))]
    seen: u64,
    /// How many wait there before the first of ours; `None` if none of ours waits.
    ahead: Option<usize>,
    /// When that was seen.
    at: Instant,
}

impl Waits {
    pub(super) fn clear(&mut self) {
        self.rows.clear();
    }

    /// Where any of ours waits, and how many are before the one that is nearest to its turn.
    fn waits_at(&self, now: Instant) -> (Vec<LockKey>, usize) {
        let waits = self.rows.iter();
        let waits = waits.filter(|(_, row)| row.ahead.is_some() && now.since(row.at) < GONE);
        let nearest = waits.clone().filter_map(|(_, row)| row.ahead).min();
        (waits.map(|(lock, _)| lock.clone()).collect(), nearest.unwrap_or(usize::MAX))
    }

    /// So many wait before the first of ours at a row that was read in this version, or none of ours waits. Answers whether ours has begun to
    /// wait.
    fn expect(&mut self, lock: &LockKey, version: u64, ahead: Option<usize>, at: Instant) -> bool {
        let new = Waited { seen: version, ahead, at };
        if let Some(row) = self.rows.get_mut(lock) {
            let former = std::mem::replace(row, new).ahead;
            return ahead.is_some() && former.is_none();
        }
        if ahead.is_none() {
            return false;
        }
        if self.rows.len() >= MOST {
            self.rows.retain(|_, row| row.ahead.is_some());
        }
        self.rows.insert(lock.clone(), new);
        true
    }

    /// The newest version of this row that was read; from now on it is this one. `None` if none of ours waited there.
    #[cfg(feature = "mysql")] // There notices lie in the row.
    pub(in crate::driver) fn read(&mut self, lock: &LockKey, version: u64) -> Option<u64> {
        let row = self.rows.get_mut(lock)?;
        let newest = version.max(row.seen);
        Some(std::mem::replace(&mut row.seen, newest))
    }
}

/// How many wait in this record before the first of this client's; `None` if none of them waits.
pub(in crate::driver) fn ahead_of_ours(record: &Record, channel: &str) -> Option<usize> {
    record.tickets.iter().position(|ticket| *ticket.channel == *channel)
}

impl<D: Dialect> Link<D> {
    /// A row that was read in this version is about to be written with this record. If one of ours waits there, it is looked for from now on.
    pub(in crate::driver) fn expect(&self, lock: &LockKey, version: u64, record: &Record) {
        let ahead = ahead_of_ours(record, &self.channel);
        let mut waits = self.waits.lock();
        let now = self.runtime.now();
        if waits.expect(lock, version, ahead, now) {
            waits.moved = now;
        }
        if ahead.is_none() || waits.polls || self.is_closed() {
            return;
        }
        waits.polls = true;
        drop(waits);
        self.runtime.spawn(Box::pin(poll(self.weak.clone())));
    }

    /// The locks where any of ours waits.
    pub(in crate::driver) fn waits_at(&self) -> Vec<LockKey> {
        self.waits.lock().waits_at(self.runtime.now()).0
    }

    /// So many are before the first of ours that waits there. A queue that moves may move on soon.
    pub(in crate::driver) fn are_ahead(&self, lock: &LockKey, ahead: usize) {
        let waits = &mut *self.waits.lock();
        let known = waits.rows.get_mut(lock).and_then(|row| row.ahead.as_mut());
        if known.is_some_and(|known| std::mem::replace(known, ahead) != ahead) {
            waits.moved = self.runtime.now();
        }
    }

    /// One of ours has its turn.
    #[cfg(feature = "mysql")]
    pub(in crate::driver) fn has_turn(&self) {
        self.waits.lock().moved = self.runtime.now();
    }

    /// How long until the next look; `None` if none of ours waits, and nobody polls from then on.
    fn next_pause(&self) -> Option<Duration> {
        let mut waits = self.waits.lock();
        let now = self.runtime.now();
        let (locks, ahead) = waits.waits_at(now);
        if locks.is_empty() || self.is_closed() {
            waits.polls = false;
            return None;
        }
        // With each one before it, its turn is further away.
        let turns = u32::try_from(ahead).unwrap_or(u32::MAX).saturating_add(1);
        let of_next = (now.since(waits.moved) / PART_OF_WAIT).clamp(OF_NEXT.0, OF_NEXT.1);
        let pause = of_next.saturating_mul(turns);
        Some(Backoff::spread(pause.min(LONGEST), &self.runtime))
    }
}

/// Looks for as long as one of ours waits.
async fn poll<D: Dialect>(weak: Weak<Link<D>>) {
    while let Some(link) = weak.upgrade() {
        let Some(pause) = link.next_pause() else { return };
        let runtime = link.runtime.clone();
        // A client that nobody uses any more ends while this sleeps.
        drop(link);
        runtime.sleep_until(runtime.now() + pause).await;
        let Some(link) = weak.upgrade() else { return };
        D::look_for_turns(&link).await;
    }
}
