//! What an acquire is aimed at: a lock on the store, as one kind.

use crate::port::{Action, Kind, LockKey, OwnerId, Step};

/// A lock on the store, and what it is used as. Waiters and holds of one client meet under it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LockId {
    pub key: LockKey,
    pub kind: Kind,
}

impl LockId {
    /// The key as text.
    pub(crate) fn as_str(&self) -> &str {
        self.key.as_str()
    }

    /// A step of one attempt.
    pub(crate) fn step(&self, owner: OwnerId, action: Action) -> Step {
        Step { lock: self.key.clone(), owner, kind: self.kind, action }
    }
}
