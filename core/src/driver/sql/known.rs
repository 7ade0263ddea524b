//! The facts that a client remembers: about the rows of locks, and about tables of the user's own.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::fault::Fault;
use crate::port::{CellKey, LockKey};
use crate::runtime::sync::Mutex;

/// Of so many names it is remembered whether they have a row, and waiters; of more, all is forgotten.
const MOST: usize = 4096;

/// So many transactions may stand in line for a row. A server slows down with a hundred.
const SHORT_LINE: usize = 24;

/// The names that have a row, and how many waited for each when it was last changed from here.
#[derive(Default)]
pub(in crate::driver) struct Known(Mutex<BTreeMap<LockKey, usize>>);

impl Known {
    /// Whether there is a row of this name, unless somebody has deleted it.
    pub(in crate::driver) fn has(&self, lock: &LockKey) -> bool {
        self.0.lock().contains_key(lock)
    }

    /// Whether a plain case is not worth a try: the lock was waited for when it was last changed from here.
    pub(in crate::driver) fn is_crowded(&self, lock: &LockKey) -> bool {
        self.0.lock().get(lock).is_some_and(|waiting| *waiting > 0)
    }

    /// Whether few waited for these locks when they were last changed from here.
    pub(super) fn has_short_lines(&self, locks: &[LockKey]) -> bool {
        let known = self.0.lock();
        locks.iter().all(|lock| known.get(lock).is_some_and(|waiting| *waiting <= SHORT_LINE))
    }

    /// Remembers that locks have rows, and how many wait for them.
    pub(in crate::driver) fn note<'a>(&self, seen: impl Iterator<Item = (&'a LockKey, usize)>) {
        let known = &mut self.0.lock();
        for (lock, waiting) in seen {
            if let Some(known) = known.get_mut(lock) {
                *known = waiting;
                continue;
            }
            if known.len() == MOST {
                known.clear();
            }
            known.insert(lock.clone(), waiting);
        }
    }
}

/// Says which rights are needed there.
pub(in crate::driver) const RIGHTS: &str =
    "the user may not do this; grant it SELECT and UPDATE on your table";

/// Says that a table cannot be used in the way it was found.
pub(in crate::driver) const CHANGED: &str = "your table is not as it was when fencelock looked at it, or its key cannot be compared; see `reply`, and try again";

/// The facts found out about tables of the user's own, each by how it was written in the option.
pub(in crate::driver) struct KnownTables<T>(Mutex<BTreeMap<Arc<str>, Arc<T>>>);

impl<T> Default for KnownTables<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T> KnownTables<T> {
    /// The table of a key, or what finds it.
    pub(in crate::driver) async fn of(
        &self,
        key: &CellKey,
        find: impl AsyncFnOnce(&str) -> Result<T, Fault>,
    ) -> Result<Arc<T>, Fault> {
        let written = key.table.clone().unwrap_or_default();
        let known = self.0.lock().get(&written).cloned();
        if let Some(known) = known {
            return Ok(known);
        }
        let found = Arc::new(find(&written).await?);
        self.0.lock().insert(written, found.clone());
        Ok(found)
    }

    /// Passes an answer on. After a failure the table is looked for again: it may have become another.
    pub(in crate::driver) fn passed<R>(
        &self,
        key: &CellKey,
        answer: Result<R, Fault>,
    ) -> Result<R, Fault> {
        if answer.is_err() {
            self.0.lock().remove(key.table.as_deref().unwrap_or_default());
        }
        answer
    }
}
