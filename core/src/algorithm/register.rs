//! What the wheel knows: every attempt, ticket and hold of the client, and when each is next looked at.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use super::hold::{Hold, Terms, deadline};
use super::target::Target;
use crate::fence::Token;
use crate::port::{Instant, Outcome, OwnerId, RuntimeHandle};

/// A foreign holder is first looked at after this long, then at twice that, ...
const FIRST_POLL: Duration = Duration::from_millis(10);
/// No ticket rests longer than this between two looks: a lost push costs no more.
pub(super) const LONGEST_REST: Duration = Duration::from_secs(1);
pub(super) const SHORTEST_REST: Duration = Duration::from_millis(2);

#[derive(Default)]
pub(super) struct Register {
    pub(super) entries: BTreeMap<OwnerId, Entry>,
    /// When each entry is next looked at.
    pub(super) agenda: BTreeSet<(Instant, OwnerId)>,
    /// Until when the wheel's task rests; it is woken if something is due earlier.
    pub(super) rests_until: Instant,
    pub(super) task: Option<Waker>,
    pub(super) closed: bool,
}

pub(super) struct Entry {
    pub(super) lock: Target,
    pub(super) terms: Terms,
    /// Tokens asked for: the terms may change with the waiter, this does not.
    pub(super) block: u32,
    pub(super) due: Instant,
    pub(super) stage: Stage,
    /// Whoever waits for the ticket to become something else.
    pub(super) waiter: Option<Waker>,
    /// Whether a grant came too late, and the waiter has not been told.
    pub(super) late: bool,
    /// The furthest end that was ever asked for before it was known to be held, answered or not.
    pub(super) asked: Instant,
}

pub(super) enum Stage {
    /// The Take is under way. A push may overtake its answer.
    Asked {
        early: Option<(Token, Duration)>,
        /// The lock was told to be open meanwhile.
        opened: bool,
    },
    /// In the queue.
    Waiting(Queue),
    /// The store does not know the ticket any more.
    Gone,
    Held(Arc<Hold>),
}

pub(super) struct Queue {
    /// The sending of the newest request that was answered "still waiting": what a push's lease is counted from.
    pub(super) base: Instant,
    /// The lock's counter in that answer: an older push is no grant of this wait.
    pub(super) last: Token,
    /// The rest before the next look at a foreign holder.
    pub(super) poll: Duration,
}

/// Brings entries of one kind together: the moment is moved forward to a grid of a quarter of the period.
pub(super) fn aligned(now: Instant, period: Duration) -> Instant {
    let grid = u64::try_from(period.as_nanos() / 4).unwrap_or(u64::MAX).max(1);
    let due = (now + period).as_nanos();
    Instant::from_nanos(due - due % grid).max(now + period / 2)
}

pub(super) fn ticket_rest(terms: &Terms) -> Duration {
    (terms.ttl / 4).clamp(SHORTEST_REST, LONGEST_REST)
}

/// A hold is looked at after a third of the lease it has now, or when it ends.
pub(super) fn next_look(hold: &Hold, left: Duration, now: Instant) -> Instant {
    let due = if hold.renew { aligned(now, left / 3) } else { Instant::FAR };
    due.min(hold.deadline())
}

impl Register {
    /// Forgets an entry. Returns until when the store may keep what was asked for in its name.
    pub(super) fn remove(&mut self, owner: OwnerId) -> Instant {
        let Some(entry) = self.entries.remove(&owner) else { return Instant::default() };
        self.agenda.remove(&(entry.due, owner));
        match &entry.stage {
            Stage::Held(hold) => hold.furthest().max(entry.asked),
            Stage::Asked { .. } | Stage::Waiting(_) | Stage::Gone => entry.asked,
        }
    }

    pub(super) fn set_due(&mut self, owner: OwnerId, due: Instant) {
        let Some(entry) = self.entries.get_mut(&owner) else { return };
        self.agenda.remove(&(entry.due, owner));
        entry.due = due;
        self.agenda.insert((due, owner));
        if due < self.rests_until {
            self.rests_until = due;
            self.wake_task();
        }
    }

    pub(super) fn look_now(&mut self, owner: OwnerId, now: Instant) {
        self.set_due(owner, now);
    }

    pub(super) fn wake_task(&mut self) {
        if let Some(task) = self.task.take() {
            task.wake();
        }
    }

    /// The entry becomes a hold, unless its time is over already.
    pub(super) fn hold(
        &mut self,
        owner: OwnerId,
        token: Token,
        deadline: Instant,
        left: Duration,
        now: Instant,
        runtime: &RuntimeHandle,
    ) -> Option<Arc<Hold>> {
        if deadline <= now && !mutant!(LateGrantAccepted) {
            return None;
        }
        let entry = self.entries.get_mut(&owner)?;
        let (lock, block) = (entry.lock.clone(), entry.block);
        let hold = Hold::new(lock, owner, token, block, &entry.terms, deadline, runtime);
        let hold = Arc::new(hold);
        entry.stage = Stage::Held(hold.clone());
        entry.wake();
        self.set_due(owner, next_look(&hold, left, now));
        Some(hold)
    }

    /// Notes a "still waiting"; returns the push that had overtaken it, if there was one.
    pub(super) fn queued(
        &mut self,
        owner: OwnerId,
        sent: Instant,
        outcome: &Outcome,
        now: Instant,
    ) -> Option<(Token, Duration)> {
        let Outcome::Queued { last, left, ahead, foreign } = *outcome else { return None };
        let entry = self.entries.get_mut(&owner)?;
        let mut early = None;
        let mut poll = FIRST_POLL;
        let mut look = false;
        match &mut entry.stage {
            Stage::Asked { early: kept, opened } => (early, look) = (kept.take(), *opened),
            Stage::Waiting(queue) if sent < queue.base => return None,
            Stage::Waiting(queue) => poll = queue.poll,
            Stage::Gone | Stage::Held(_) => return None,
        }
        let mut rest = aligned(now, ticket_rest(&entry.terms));
        if ahead == 0 {
            // The head looks again when the holder's lease ends; at a foreign holder, which tells nobody, sooner.
            if foreign && !mutant!(ForeignHolderNotPolled) {
                let most =
                    left.map_or(LONGEST_REST, |left| left / 10).clamp(SHORTEST_REST, LONGEST_REST);
                rest = rest.min(now + poll.min(most));
                poll = poll.saturating_mul(2).min(LONGEST_REST);
            }
            rest = left.map_or(rest, |left| rest.min(now + left.max(SHORTEST_REST)));
        }
        entry.stage = Stage::Waiting(Queue { base: sent, last, poll });
        if early.is_some() && mutant!(EarlyPushDropped) {
            return None;
        }
        self.set_due(owner, if look { now } else { rest });
        early
    }

    /// The store said that the ticket has won, but too late: whoever waits for it is told.
    pub(super) fn late(&mut self, owner: OwnerId) {
        if let Some(entry) = self.entries.get_mut(&owner) {
            entry.late = true;
            entry.wake();
        }
    }

    /// Somebody should ask now: an attempt, at once or when it is in the queue; or a hold whose mode is being changed.
    pub(super) fn opened(&mut self, owner: OwnerId, now: Instant) {
        match self.entries.get_mut(&owner).map(|entry| &mut entry.stage) {
            Some(Stage::Asked { opened, .. }) => *opened = true,
            Some(Stage::Held(hold)) => hold.tell(),
            _ => self.look_now(owner, now),
        }
    }

    /// A grant was pushed. It counts if it is for an attempt that waits and newer than its last "still waiting".
    pub(super) fn pushed(
        &mut self,
        owner: OwnerId,
        token: Token,
        ttl: Duration,
        now: Instant,
        runtime: &RuntimeHandle,
    ) {
        let Some(entry) = self.entries.get_mut(&owner) else { return };
        let queue = match &mut entry.stage {
            Stage::Asked { early, .. } => {
                *early = Some((token, ttl));
                return;
            }
            Stage::Waiting(queue) => queue,
            Stage::Gone | Stage::Held(_) => return,
        };
        if token <= queue.last && !mutant!(LatePushBelieved) {
            return;
        }
        let base = if mutant!(PushCountedFromArrival) { now } else { queue.base };
        let left = (base + ttl).since(now);
        // A fixed lease must begin whole, and a short rest is not worth beginning with: a Refresh renews first.
        let fixed = !entry.terms.renew && !mutant!(FixedLeaseNotRenewedFirst);
        let short = left < ttl / 2 && !mutant!(ShortRestBelieved);
        if fixed || short {
            self.look_now(owner, now);
            return;
        }
        self.hold(owner, token, deadline(base, ttl), left, now, runtime);
    }
}

impl Entry {
    pub(super) fn wake(&mut self) {
        if let Some(waiter) = self.waiter.take() {
            waiter.wake();
        }
    }
}
