//! The cells of the simulated store, and a log of every change of them.

use std::collections::BTreeMap;
use std::time::Duration;

use fencelock::driver::cell::{self, CellRecord};
use fencelock::port::{Cell, CellKey, Change, Look, OwnerId, Swap};

/// A change that was carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CellChange {
    /// When, in true time.
    pub at: Duration,
    /// When, on the store's clock.
    pub clock: u64,
    /// Which cell.
    pub key: CellKey,
    /// By whom.
    pub writer: OwnerId,
    /// The cell before the change; `None` if there was none.
    pub before: Option<Cell>,
    /// The cell after the change; `None` if there is none.
    pub after: Option<Cell>,
    /// The version that was answered.
    pub version: u64,
    /// The tokens of those who then held the lock of this name, if it is a job.
    pub tokens: Vec<u64>,
}

/// All cells. The log forgets nothing, whatever the store loses.
#[derive(Debug, Default)]
pub(super) struct CellTable {
    records: BTreeMap<CellKey, CellRecord>,
    snapshot: BTreeMap<CellKey, CellRecord>,
    log: Vec<CellChange>,
}

impl CellTable {
    /// Reads the cell of `key` as it is at `now`.
    pub(super) fn look(&self, key: &CellKey, now: u64) -> Look {
        cell::look(self.records.get(key), now)
    }

    /// Carries a change out, or not.
    pub(super) fn swap(
        &mut self,
        change: &Change,
        now: u64,
        at: Duration,
        tokens: Vec<u64>,
    ) -> Swap {
        let mut record = self.records.remove(&change.key);
        let before = cell::look(record.as_ref(), now).cell;
        let swap = cell::swap(&mut record, change, now);
        if let Swap::Done { version, .. } = swap {
            self.log.push(CellChange {
                at,
                clock: now,
                key: change.key.clone(),
                writer: change.writer,
                before,
                after: record.as_ref().map(|record| record.cell.clone()),
                version: version.get(),
                tokens,
            });
        }
        self.records.extend(record.map(|record| (change.key.clone(), record)));
        swap
    }

    /// Everything that was changed, in order.
    pub(super) fn log(&self) -> &[CellChange] {
        &self.log
    }

    /// Remembers the present data.
    pub(super) fn snapshot(&mut self) {
        self.snapshot = self.records.clone();
    }

    /// Goes back to the data of the last snapshot.
    pub(super) fn restore(&mut self) {
        self.records = self.snapshot.clone();
    }

    /// Loses all data.
    pub(super) fn wipe(&mut self) {
        self.records.clear();
    }
}
