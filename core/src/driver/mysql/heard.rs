//! What a client has read of the rows it waits at.

use std::collections::BTreeMap;

use super::told::Told;
use crate::port::{LockKey, Notice};

/// Of so many names it is remembered what was read; of more, only where one of ours waits.
const MOST: usize = 4096;

/// The rows, by their locks.
#[derive(Default)]
pub(super) struct Heard(BTreeMap<LockKey, Row>);

struct Row {
    /// The newest version that was read.
    seen: u64,
    /// Whether one of ours waits.
    waits: bool,
}

impl Heard {
    /// Where any of ours waits.
    pub(super) fn waits_at(&self) -> Vec<LockKey> {
        let waits = self.0.iter().filter(|(_, row)| row.waits);
        waits.map(|(lock, _)| lock.clone()).collect()
    }

    /// One of ours waits at a row that was read in this version, or none.
    pub(super) fn expect(&mut self, lock: &LockKey, version: u64, waits: bool) {
        if let Some(row) = self.0.get_mut(lock) {
            *row = Row { seen: version, waits };
            return;
        }
        if !waits {
            return;
        }
        if self.0.len() >= MOST {
            self.0.retain(|_, row| row.waits);
        }
        self.0.insert(lock.clone(), Row { seen: version, waits });
    }

    /// What is new of what is told there to this client.
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
