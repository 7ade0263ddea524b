//! The target of an acquire: a lock on the store, as one kind.

use crate::port::{Action, Kind, LockKey, OwnerId, Step};

/// The beginning of the key of a job's lock. No user's name begins so.
const JOB: &str = "fencelock:job:";

/// A lock on the store, and what it is used as. Waiters and holds of one client meet under it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LockId {
    pub key: LockKey,
    pub kind: Kind,
}

impl LockId {
    /// The lock that a run of this job holds.
    pub(super) fn of_job(name: &str) -> Self {
        Self { key: LockKey::new([JOB, name].concat()), kind: Kind::Mutex }
    }

    /// The name that people know it by: of a job's lock, the job's.
    pub(crate) fn name(&self) -> &str {
        self.as_str().strip_prefix(JOB).unwrap_or(self.as_str())
    }

    /// The key as text.
    pub(crate) fn as_str(&self) -> &str {
        self.key.as_str()
    }

    /// A step of one attempt.
    pub(crate) fn step(&self, owner: OwnerId, action: Action) -> Step {
        Step { lock: self.key.clone(), owner, kind: self.kind, action }
    }
}
