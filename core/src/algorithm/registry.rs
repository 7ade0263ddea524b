//! The renewer's state: every attempt, ticket and hold of the client, and when each is next looked at.

use std::sync::Arc;
use std::time::Duration;

use super::due_queue::DueQueue;
use super::entries::{Entries, Stage};
use super::hold::{Hold, Tokens, believed, deadline};
use super::lock_id::LockId;
use super::next_look::next_look;
use super::pending_attempt::{PendingAttempt, Push};
use crate::port::{Instant, Outcome, OwnerId, RuntimeHandle};

#[derive(Default)]
pub(super) struct Registry {
    pub(super) entries: Entries,
    pub(super) due_queue: DueQueue,
}

/// A ticket that nobody waits for when the client is closed.
pub(crate) struct Abandoned {
    pub lock: LockId,
    pub owner: OwnerId,
    /// The lease it wanted.
    pub ttl: Duration,
}

impl Registry {
    /// An attempt of this owner begins.
    pub(super) fn add(&mut self, pending: PendingAttempt) {
        let owner = pending.owner;
        self.remove(owner);
        self.entries.insert(owner, Stage::Pending(Box::new(pending)));
    }

    /// Forgets an entry.
    pub(super) fn remove(&mut self, owner: OwnerId) {
        if let Some(slot) = self.entries.find(owner) {
            self.due_queue.forget(&mut self.entries, slot);
            self.entries.remove(owner);
        }
    }

    /// Nothing of this owner is left on the store. Returns the hold that is lost with it.
    pub(super) fn gone(&mut self, owner: OwnerId) -> Option<Arc<Hold>> {
        let hold = match &mut self.entries.get_mut(owner)?.stage {
            Stage::Held(hold) if !hold.is_over() => hold.clone(),
            Stage::Pending(pending) => {
                pending.gone();
                return None;
            }
            Stage::Held(_) | Stage::Free(_) => return None,
        };
        self.remove(owner);
        Some(hold)
    }

    /// Until when the store may keep what was asked for in this owner's name.
    pub(super) fn furthest(&self, owner: OwnerId) -> Instant {
        match self.entries.find(owner).map(|slot| &self.entries[slot].stage) {
            Some(Stage::Held(hold)) => hold.furthest(),
            Some(Stage::Pending(pending)) => pending.asked,
            Some(Stage::Free(_)) | None => Instant::default(),
        }
    }

    /// All there is, and whoever waits is woken.
    pub(super) fn all_woken(&mut self) -> (Vec<Arc<Hold>>, Vec<Abandoned>) {
        let (mut holds, mut tickets) = (Vec::new(), Vec::new());
        for stage in self.entries.stages_mut() {
            match stage {
                Stage::Free(_) => {}
                Stage::Held(hold) => holds.push(hold.clone()),
                Stage::Pending(pending) => {
                    pending.wake();
                    let (lock, ttl) = (pending.lock.clone(), pending.request.ttl);
                    tickets.push(Abandoned { lock, owner: pending.owner, ttl });
                }
            }
        }
        (holds, tickets)
    }

    /// The attempt of this owner, if it is one.
    pub(super) fn pending(&mut self, owner: OwnerId) -> Option<&mut PendingAttempt> {
        match &mut self.entries.get_mut(owner)?.stage {
            Stage::Pending(pending) => Some(pending),
            Stage::Held(_) | Stage::Free(_) => None,
        }
    }

    pub(super) fn set_due(&mut self, owner: OwnerId, due: Instant) {
        if let Some(slot) = self.entries.find(owner) {
            self.due_queue.set(&mut self.entries, slot, due);
        }
    }

    pub(super) fn look_now(&mut self, owner: OwnerId, now: Instant) {
        self.set_due(owner, now);
    }

    /// The entry becomes a hold for a lease that counts from `sent`, unless that is over already.
    pub(super) fn hold(
        &mut self,
        owner: OwnerId,
        tokens: Tokens,
        sent: Instant,
        lease: Duration,
        now: Instant,
        runtime: &RuntimeHandle,
    ) -> Option<Arc<Hold>> {
        let slot = self.entries.find(owner)?;
        let stage = &mut self.entries[slot].stage;
        let pending = match stage {
            Stage::Pending(pending) => pending,
            Stage::Held(hold) => return Some(hold.clone()),
            Stage::Free(_) => return None,
        };
        let lease = believed(lease, sent, pending.asked, pending.request.ttl);
        let deadline = deadline(sent, lease);
        if deadline <= now {
            return None;
        }
        let tokens = Tokens { count: tokens.count.min(pending.block), ..tokens };
        let lock = pending.lock.clone();
        let hold = Arc::new(Hold::new(lock, owner, tokens, &pending.request, deadline, runtime));
        hold.asks(pending.asked);
        pending.wake();
        *stage = Stage::Held(hold.clone());
        self.due_queue.set(&mut self.entries, slot, next_look(&hold, lease, now));
        Some(hold)
    }

    /// Notes a "still waiting"; returns the push that had overtaken it, if there was one.
    pub(super) fn queued(
        &mut self,
        owner: OwnerId,
        sent: Instant,
        outcome: &Outcome,
        now: Instant,
    ) -> Option<(Tokens, Duration)> {
        let queued = self.pending(owner)?.queued(sent, outcome, now)?;
        self.set_due(owner, queued.look);
        queued.early
    }

    /// The store said that the ticket has won, but too late: whoever waits for it is told.
    pub(super) fn late(&mut self, owner: OwnerId) {
        if let Some(pending) = self.pending(owner) {
            pending.late = true;
            pending.wake();
        }
    }

    /// An attempt should ask now: at once or when it is in the queue.
    pub(super) fn opened(&mut self, owner: OwnerId, now: Instant) {
        match self.entries.get_mut(owner).map(|entry| &mut entry.stage) {
            Some(Stage::Pending(pending)) => {
                if pending.opened_early() {
                    return;
                }
            }
            Some(Stage::Held(_) | Stage::Free(_)) | None => return,
        }
        self.look_now(owner, now);
    }

    /// A grant was pushed. It counts if it is for an attempt that waits and newer than its last "still waiting".
    pub(super) fn pushed(
        &mut self,
        owner: OwnerId,
        tokens: Tokens,
        ttl: Duration,
        now: Instant,
        runtime: &RuntimeHandle,
    ) {
        let Some(pending) = self.pending(owner) else { return };
        match pending.pushed(tokens, ttl, now) {
            Push::Kept | Push::Stale => {}
            Push::RenewFirst => self.look_now(owner, now),
            Push::Granted { since } => drop(self.hold(owner, tokens, since, ttl, now, runtime)),
        }
    }
}
