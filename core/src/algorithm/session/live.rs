//! A session of this client that is open.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::engine::deadline;
use crate::port::{Instant, LockKey, OwnerId};

/// Names a session of one client.
pub(super) type Id = u64;

/// See the module.
pub(super) struct Live<T> {
    pub(super) session: Arc<T>,
    /// When the newest request that was answered was sent.
    sent: Instant,
    /// Until when this client relies on it.
    pub(super) deadline: Instant,
    pub(super) next_beat: Instant,
    /// When its task looks next.
    pub(super) looks: Instant,
    /// A lock waits in it: nothing else is answered, and nothing is promised.
    pub(super) waits: bool,
    /// For whom it has, or is about to have, which lock.
    pub(super) names: BTreeMap<LockKey, OwnerId>,
}

impl<T> Live<T> {
    pub(super) fn new(session: Arc<T>, sent: Instant, ttl: Duration) -> Self {
        Self {
            session,
            sent,
            deadline: deadline(sent, ttl),
            next_beat: sent + ttl / 4,
            looks: Instant::FAR,
            waits: false,
            names: BTreeMap::new(),
        }
    }

    /// A request that was sent at `sent` was answered.
    pub(super) fn answered(&mut self, sent: Instant, ttl: Duration) {
        self.sent = self.sent.max(sent);
        self.deadline = self.deadline.max(deadline(sent, ttl));
        self.next_beat = self.next_beat.max(sent + ttl / 4);
    }

    /// Whether nothing was heard for so long that renewals are not answered.
    pub(super) fn is_in_doubt(&self, now: Instant, ttl: Duration) -> bool {
        !self.waits && now >= self.sent + ttl / 2
    }

    /// Whether its deadline has passed.
    pub(super) fn is_late(&self, now: Instant) -> bool {
        !self.waits && now >= self.deadline
    }
}
