//! The model of a cell: what reading and compare-and-set mean, as pure functions over one cell's record.
//!
//! Memory, SQLite, PostgreSQL and the simulator run these very functions; the scripts on Redis say the same again, and are tied to
//! them by random changes, answer by answer.

use std::collections::BTreeMap;

use crate::driver::numbers;
use crate::port::limits::{TOMBSTONE_LIFE, TRAIL};
use crate::port::{Cell, CellKey, Change, Failure, Look, Mark, Swap, Version};

/// A cell and its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CellRecord {
    /// The cell as readers see it.
    pub cell: Cell,
    /// The moment from which on it counts as absent, in µs; `u64::MAX`: never.
    pub ends: u64,
}

/// The cell at `now`, which is absent once it has ended.
pub fn look(record: Option<&CellRecord>, now: u64) -> Look {
    let record = record.filter(|record| now < record.ends);
    Look { cell: record.map(|record| record.cell.clone()), clock: now }
}

/// Why this is not to be changed: it would draw a version where none is left. `floor` is the lowest that may be drawn.
pub fn refusal(record: Option<&CellRecord>, now: u64, floor: u64) -> Option<Failure> {
    let last = look(record, now).version().map_or(0, Version::get);
    (!numbers::is_left(last, floor)).then(numbers::none_left)
}

/// The name of its row in a table.
#[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
pub(super) fn row_name(key: &CellKey) -> String {
    format!("{}:{}", key.family.word(), key.name)
}

/// Carries a change out, if what is there at `now` has the version it expects.
pub fn swap(record: &mut Option<CellRecord>, change: &Change, now: u64) -> Swap {
    swap_above(record, change, now, now)
}

/// The same for a store that draws versions from `floor` on, a number of its own that never falls, instead of its clock.
pub fn swap_above(record: &mut Option<CellRecord>, change: &Change, now: u64, floor: u64) -> Swap {
    let present = look(record.as_ref(), now);
    let version = present.version();
    // A version never comes back, so of all copies of a change at most one is carried out.
    if version != change.expected {
        return Swap::Other(present);
    }
    let last = version.map_or(0, Version::get);
    let next = floor.max(last + 1);
    let made = Version::new(next);
    let mut trail = vec![Mark { version: made, writer: change.writer }];
    trail.extend(present.cell.into_iter().flat_map(|cell| cell.trail));
    // A client whose answer was lost looks for itself among these.
    trail.truncate(TRAIL);
    let end = |from: u64, life: std::time::Duration| {
        from.saturating_add(u64::try_from(life.as_micros()).unwrap_or(u64::MAX))
    };
    // Where the counter is ahead of the clock, it is kept until the clock has passed it.
    let ends = change.life().map_or(u64::MAX, |life| end(now, life).max(end(next, TOMBSTONE_LIFE)));
    *record =
        Some(CellRecord { cell: Cell { value: change.value.clone(), since: now, trail }, ends });
    Swap::Done { version: made, since: now }
}

/// The cells of a store in this process.
#[derive(Debug, Default)]
pub struct CellTable(BTreeMap<CellKey, CellRecord>);

impl CellTable {
    /// The cell under this key at `now`.
    pub fn look(&self, key: &CellKey, now: u64) -> Look {
        look(self.0.get(key), now)
    }

    /// Carries a change out, or says why it is not to be.
    pub fn change(&mut self, change: &Change, now: u64) -> Result<Swap, Failure> {
        if let Some(failure) = refusal(self.0.get(&change.key), now, now) {
            return Err(failure);
        }
        let mut record = self.0.remove(&change.key);
        let swap = swap(&mut record, change, now);
        self.0.extend(record.map(|record| (change.key.clone(), record)));
        Ok(swap)
    }

    /// Forgets what has ended.
    pub(super) fn forget(&mut self, now: u64) {
        self.0.retain(|_, record| record.ends > now);
    }
}
