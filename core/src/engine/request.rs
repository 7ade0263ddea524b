//! The parameters of an acquire: which lock, how it is held, and how long the caller waits.

use std::sync::Arc;
use std::time::Duration;

use crate::fence::Token;
use crate::port::{Action, Instant, Kind, LockKey, Mode, OwnerId, Runtime, Step, Take};

/// A number for an acquire, and when it began, for the events it causes.
#[derive(Clone, Copy)]
pub(super) struct Asked {
    pub attempt: u64,
    pub since: Instant,
}

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
    pub(crate) fn of_job(name: &str) -> Self {
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

/// The parameters of an acquire, apart from how long it waits.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    /// How to hold it.
    pub mode: Mode,
    /// Of how many permits.
    pub limit: u32,
    /// How many of them.
    pub permits: u32,
    /// The lease wanted.
    pub ttl: Duration,
    /// Whether the lease is renewed.
    pub renew: bool,
    /// The longest it may be held.
    pub max_hold: Option<Duration>,
    /// Leave the lock open at the end instead of handing it over (`fair: false`).
    pub open: bool,
    /// How often the hold may pass on inside this client.
    pub local: u32,
    /// The information about the client that asks, as JSON.
    pub info: Arc<str>,
    /// Whether it goes on with a hold of another client. Such a one does not stand in this client's line: others may stand there.
    pub adopts: bool,
}

impl Request {
    /// The Take that asks the store for it.
    pub(crate) fn take(&self, wait: bool, floor: Token) -> Take {
        let Self { mode, limit, permits, ttl, ref info, .. } = *self;
        let (block, info) = (self.block(), info.clone());
        Take { mode, limit, permits, ttl, wait, block, floor, info, vote: None }
    }

    /// Whether it stands in the line of its client for the lock.
    pub(crate) fn has_line(&self) -> bool {
        self.mode.is_exclusive() && !self.adopts
    }

    /// Tokens to draw with a grant: one for every local holder.
    pub(crate) fn block(&self) -> u32 {
        if self.renew && self.mode.is_exclusive() { self.local + 1 } else { 1 }
    }
}

#[cfg(test)]
impl Request {
    /// A mutex that is renewed, for tests.
    pub(super) fn of_a_mutex(local: u32) -> Self {
        Self {
            mode: Mode::Exclusive,
            limit: 1,
            permits: 1,
            ttl: Duration::from_secs(30),
            renew: true,
            max_hold: None,
            open: false,
            local,
            info: "{}".into(),
            adopts: false,
        }
    }
}

/// How long an acquire waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    /// Not at all.
    Try,
    Until(Instant),
    Forever,
}

impl Wait {
    /// From now on so long; `None`: for ever.
    pub(crate) fn of(wait: Option<Duration>, runtime: &dyn Runtime) -> Self {
        match wait {
            None => Self::Forever,
            Some(Duration::ZERO) => Self::Try,
            Some(wait) => Self::Until(runtime.now() + wait),
        }
    }
}
