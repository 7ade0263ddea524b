//! What the wheel knows: every attempt, ticket and hold of the client, and when each is next looked at.

use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use super::agenda::Agenda;
use super::entries::{Entries, Stage};
use super::hold::{Hold, Terms, Tokens, believed, deadline};
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
    pub(super) entries: Entries,
    pub(super) agenda: Agenda,
}

/// An attempt to become a hold.
pub(super) struct Bid {
    pub(super) owner: OwnerId,
    pub(super) lock: Target,
    pub(super) terms: Terms,
    /// Tokens asked for: the terms may change with the waiter, this does not.
    pub(super) block: u32,
    /// The furthest end that was ever asked for, answered or not.
    pub(super) asked: Instant,
    pub(super) progress: Progress,
    /// Whoever waits for the ticket to become something else.
    pub(super) waiter: Option<Waker>,
    /// Whether a grant came too late, and the waiter has not been told.
    pub(super) late: bool,
}

/// A ticket that nobody waits for when the client is closed.
pub(crate) struct Abandoned {
    pub lock: Target,
    pub owner: OwnerId,
    /// The lease it wanted.
    pub ttl: Duration,
}

pub(super) enum Progress {
    /// The Take is under way. A push may overtake its answer.
    Asked {
        early: Option<(Tokens, Duration)>,
        /// The lock was told to be open meanwhile.
        opened: bool,
    },
    /// In the queue.
    Waiting(Queue),
    /// The store does not know the ticket any more.
    Gone,
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
    let rest = (terms.ttl / 4).clamp(SHORTEST_REST, LONGEST_REST);
    if mutant!(TicketsRestLong) { rest * 2 } else { rest }
}

/// A hold is looked at after a third of the lease it has now, or when it ends.
pub(super) fn next_look(hold: &Hold, left: Duration, now: Instant) -> Instant {
    let period = if mutant!(RenewedLate) { left * 9 / 10 } else { left / 3 };
    let due = if hold.renew { aligned(now, period) } else { Instant::FAR };
    due.min(hold.deadline())
}

impl Register {
    /// An attempt of this owner begins.
    pub(super) fn add(&mut self, bid: Bid) {
        let owner = bid.owner;
        self.remove(owner);
        self.entries.insert(owner, Stage::Bidding(Box::new(bid)));
    }

    /// Forgets an entry.
    pub(super) fn remove(&mut self, owner: OwnerId) {
        if let Some(place) = self.entries.find(owner) {
            self.agenda.forget(&mut self.entries, place);
            self.entries.remove(owner);
        }
    }

    /// Until when the store may keep what was asked for in this owner's name.
    pub(super) fn furthest(&self, owner: OwnerId) -> Instant {
        match self.entries.find(owner).map(|place| &self.entries[place].stage) {
            Some(Stage::Held(hold)) => hold.furthest(),
            Some(Stage::Bidding(bid)) => bid.asked,
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
                Stage::Bidding(bid) => {
                    bid.wake();
                    let (lock, ttl) = (bid.lock.clone(), bid.terms.ttl);
                    tickets.push(Abandoned { lock, owner: bid.owner, ttl });
                }
            }
        }
        (holds, tickets)
    }

    /// The attempt of this owner, if it is one.
    pub(super) fn bid(&mut self, owner: OwnerId) -> Option<&mut Bid> {
        match &mut self.entries.get_mut(owner)?.stage {
            Stage::Bidding(bid) => Some(bid),
            Stage::Held(_) | Stage::Free(_) => None,
        }
    }

    pub(super) fn set_due(&mut self, owner: OwnerId, due: Instant) {
        if let Some(place) = self.entries.find(owner) {
            self.agenda.set(&mut self.entries, place, due);
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
        let place = self.entries.find(owner)?;
        let stage = &mut self.entries[place].stage;
        let bid = match stage {
            Stage::Bidding(bid) => bid,
            Stage::Held(hold) => return Some(hold.clone()),
            Stage::Free(_) => return None,
        };
        let lease = believed(lease, sent, bid.asked, bid.terms.ttl);
        let deadline = deadline(sent, lease);
        if deadline <= now && !mutant!(LateGrantAccepted) {
            return None;
        }
        let tokens = Tokens { count: tokens.count.min(bid.block), ..tokens };
        let lock = bid.lock.clone();
        let hold = Arc::new(Hold::new(lock, owner, tokens, &bid.terms, deadline, runtime));
        hold.asks(bid.asked);
        bid.wake();
        *stage = Stage::Held(hold.clone());
        self.agenda.set(&mut self.entries, place, next_look(&hold, lease, now));
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
        let Outcome::Queued { last, left, ahead, foreign } = *outcome else { return None };
        let bid = self.bid(owner)?;
        let mut early = None;
        let mut poll = FIRST_POLL;
        let mut look = false;
        match &mut bid.progress {
            Progress::Asked { early: kept, opened } => (early, look) = (kept.take(), *opened),
            Progress::Waiting(queue) if sent < queue.base && !mutant!(BaseMovesBack) => {
                return None;
            }
            Progress::Waiting(queue) => poll = queue.poll,
            Progress::Gone => return None,
        }
        let mut rest = aligned(now, ticket_rest(&bid.terms));
        if ahead == 0 || foreign && mutant!(AllPollForeign) {
            // The head looks again when the holder's lease ends; at a foreign holder, which tells nobody, sooner.
            if foreign && !mutant!(ForeignHolderNotPolled) {
                let most =
                    left.map_or(LONGEST_REST, |left| left / 10).clamp(SHORTEST_REST, LONGEST_REST);
                rest = rest.min(now + poll.min(most));
                let more = if mutant!(ForeignPollSteady) { 1 } else { 2 };
                poll = poll.saturating_mul(more).min(LONGEST_REST);
            }
            rest = left.map_or(rest, |left| rest.min(now + left.max(SHORTEST_REST)));
        }
        let late = early.is_some() && mutant!(EarlyPushCountedFromAnswer);
        let base = if late { now } else { sent };
        bid.progress = Progress::Waiting(Queue { base, last, poll });
        if early.is_some() && mutant!(EarlyPushDropped) {
            return None;
        }
        self.set_due(owner, if look { now } else { rest });
        early
    }

    /// The store said that the ticket has won, but too late: whoever waits for it is told.
    pub(super) fn late(&mut self, owner: OwnerId) {
        if let Some(bid) = self.bid(owner) {
            bid.late = true;
            bid.wake();
        }
    }

    /// Somebody should ask now: an attempt, at once or when it is in the queue; or a hold whose mode is being changed.
    pub(super) fn opened(&mut self, owner: OwnerId, now: Instant) {
        match self.entries.get_mut(owner).map(|entry| &mut entry.stage) {
            Some(Stage::Held(hold)) => return hold.tell(),
            Some(Stage::Bidding(bid)) => {
                if let Progress::Asked { opened, .. } = &mut bid.progress {
                    *opened = true;
                    return;
                }
            }
            Some(Stage::Free(_)) | None => return,
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
        let Some(bid) = self.bid(owner) else { return };
        let queue = match &mut bid.progress {
            Progress::Asked { early, .. } => {
                *early = Some((tokens, ttl));
                return;
            }
            Progress::Waiting(queue) => queue,
            Progress::Gone => return,
        };
        if tokens.first <= queue.last && !mutant!(LatePushBelieved) {
            return;
        }
        let base = if mutant!(PushCountedFromArrival) { now } else { queue.base };
        let left = (base + ttl).since(now);
        // A fixed lease must begin whole, and a short rest is not worth beginning with: a Refresh renews first.
        let fixed = !bid.terms.renew && !mutant!(FixedLeaseNotRenewedFirst);
        let short = left < ttl / 2 && !mutant!(ShortRestBelieved);
        if fixed || short {
            self.look_now(owner, now);
            return;
        }
        self.hold(owner, tokens, base, ttl, now, runtime);
    }
}

impl Bid {
    pub(super) fn wake(&mut self) {
        if let Some(waiter) = self.waiter.take() {
            waiter.wake();
        }
    }
}
