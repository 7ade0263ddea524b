//! The facts that a client remembers about the rows of locks.

use std::collections::BTreeMap;

use crate::port::LockKey;
use crate::runtime::sync::Mutex;

/// Of so many names it is remembered whether they have a row, and waiters; of more, all is forgotten.
const MOST: usize = 4096;

/// The names that have a row, and whether they were waited for when they were last changed from here.
#[derive(Default)]
pub(in crate::driver) struct Known(Mutex<BTreeMap<LockKey, bool>>);

impl Known {
    /// Whether there is a row of this name, unless somebody has deleted it.
    pub(in crate::driver) fn has(&self, lock: &LockKey) -> bool {
        self.0.lock().contains_key(lock)
    }

    /// Whether a plain case is not worth a try: the lock was waited for when it was last changed from here.
    pub(in crate::driver) fn is_crowded(&self, lock: &LockKey) -> bool {
        self.0.lock().get(lock).is_some_and(|waited_for| *waited_for)
    }

    /// Remembers that locks have rows, and whether they are waited for.
    pub(in crate::driver) fn note<'a>(&self, seen: impl Iterator<Item = (&'a LockKey, bool)>) {
        let known = &mut self.0.lock();
        for (lock, waited_for) in seen {
            if let Some(known) = known.get_mut(lock) {
                *known = waited_for;
                continue;
            }
            if known.len() == MOST {
                known.clear();
            }
            known.insert(lock.clone(), waited_for);
        }
    }
}
