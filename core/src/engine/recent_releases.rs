//! Tickets and holds that this client has given back lately. A server that takes over may not know it yet: the last writes of the
//! one before are lost with it, whatever it had confirmed. So they are given back once more when the store comes back, and when
//! the store grants a ticket that has ended.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};

use super::cleanup::{Cleanup, CleanupSender};
use super::request::LockId;
use crate::port::{Action, Instant, OwnerId};
use crate::runtime::sync::Mutex;

/// How many are remembered.
const MOST: usize = 1024;

/// A bounded memory of ends, in the order in which they came.
pub(crate) struct RecentReleases {
    ends: Mutex<VecDeque<End>>,
    cleanup: CleanupSender,
}

struct End {
    lock: LockId,
    owner: OwnerId,
    /// When nothing can be left of it on any store.
    until: Instant,
    /// Its repetition, while that is not settled.
    repeated: Weak<()>,
}

impl RecentReleases {
    pub(crate) fn new(cleanup: CleanupSender) -> Self {
        Self { ends: Mutex::default(), cleanup }
    }

    /// A ticket or hold of this owner, of which nothing is left after `until`, was given back, and nobody waits for the
    /// answer to that any more: a Leave that came before it would make the answer untrue.
    pub(crate) fn note(&self, lock: &LockId, owner: OwnerId, until: Instant) {
        let mut ends = self.ends.lock();
        if ends.len() == MOST {
            ends.pop_front();
        }
        ends.push_back(End { lock: lock.clone(), owner, until, repeated: Weak::new() });
    }

    /// Gives all of them back again that a store may still keep.
    pub(crate) fn repeat(&self, now: Instant) {
        let mut ends = self.ends.lock();
        ends.retain(|end| now < end.until);
        for end in &mut *ends {
            // Stores that come and go need not be told more often than they answer.
            if end.repeated.strong_count() == 0 {
                self.leave(end);
            }
        }
    }

    /// The store has told an owner that waits no more that it may have the lock.
    pub(crate) fn served(&self, owner: OwnerId) {
        if let Some(end) = self.ends.lock().iter_mut().rev().find(|end| end.owner == owner) {
            self.leave(end);
        }
    }

    fn leave(&self, end: &mut End) {
        let settled = Arc::new(());
        end.repeated = Arc::downgrade(&settled);
        self.cleanup.send(Cleanup {
            lock: end.lock.clone(),
            owner: end.owner,
            action: Action::Leave { tombstone: None },
            until: end.until,
            settled: Some(settled),
        });
    }
}
