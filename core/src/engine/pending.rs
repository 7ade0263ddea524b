//! An attempt to become a hold, from its Take to the grant: a ticket in the queue of a lock, and what was pushed for it.

use std::task::Waker;
use std::time::Duration;

use super::due::{LONGEST_REST, SHORTEST_REST, aligned, ticket_rest};
use super::hold::Tokens;
use super::request::{LockId, Request};
use crate::fence::Token;
use crate::port::{Instant, Outcome, OwnerId};

/// A foreign holder is first looked at after this long, then at twice that, ...
const FIRST_POLL: Duration = Duration::from_millis(10);

/// An attempt to become a hold.
pub(super) struct Pending {
    pub owner: OwnerId,
    pub lock: LockId,
    pub request: Request,
    /// Tokens asked for: the request may change with the waiter, this does not.
    pub block: u32,
    /// The furthest end that was ever asked for, answered or not.
    pub asked: Instant,
    pub progress: Progress,
    /// The waker of the task that waits for the ticket to become something else.
    pub waiter: Option<Waker>,
    /// Whether a grant came too late, and the waiter does not know yet.
    pub late: bool,
}

pub(super) enum Progress {
    /// The Take is under way. A push may overtake its answer.
    Asked {
        early: Option<(Tokens, Duration)>,
        /// Whether a notice said meanwhile that the lock is open.
        opened: bool,
    },
    /// In the queue.
    Waiting {
        /// The sending of the newest request that was answered "still waiting": a push's lease counts from it.
        base: Instant,
        /// The lock's counter in that answer: an older push is no grant of this wait.
        last: Token,
        /// The rest before the next look at a foreign holder.
        poll: Duration,
    },
    /// The store does not know the ticket any more.
    Gone,
}

/// The consequences of a "still waiting".
pub(super) struct Queued {
    /// A grant that was pushed before the answer came.
    pub early: Option<(Tokens, Duration)>,
    /// When the ticket is looked at again.
    pub look: Instant,
}

/// The meaning of a pushed grant.
pub(super) enum Push {
    /// It changes nothing: the answer to the Take decides, or it is no grant of this wait.
    Ignored,
    /// Too little is left of it to begin with: a Refresh renews it first.
    RenewFirst,
    /// The lock is granted, for a lease that counts from `since`.
    Granted { since: Instant },
}

impl Pending {
    /// The Take goes out at `now`.
    pub(super) fn new(owner: OwnerId, lock: LockId, request: Request, now: Instant) -> Self {
        let progress = Progress::Asked { early: None, opened: false };
        let (block, asked) = (request.block(), now + request.ttl);
        Self { owner, lock, request, block, asked, progress, waiter: None, late: false }
    }

    pub(super) fn wake(&mut self) {
        if let Some(waiter) = self.waiter.take() {
            waiter.wake();
        }
    }

    /// The store does not know its ticket any more. A Take that is under way says so itself.
    pub(super) fn gone(&mut self) {
        if let Progress::Waiting { .. } = self.progress {
            self.progress = Progress::Gone;
            self.wake();
        }
    }

    /// The lock is open. False if the answer to the Take is awaited, which acts on it then.
    pub(super) fn opened(&mut self) -> bool {
        let Progress::Asked { opened, .. } = &mut self.progress else { return true };
        *opened = true;
        false
    }

    /// The store has answered a request sent at `sent` with "still waiting". `None`: the answer says nothing new.
    pub(super) fn queued(
        &mut self,
        sent: Instant,
        outcome: &Outcome,
        now: Instant,
    ) -> Option<Queued> {
        let Outcome::Queued { last, left, ahead, foreign } = *outcome else { return None };
        let (mut early, mut poll, mut look_now) = (None, FIRST_POLL, false);
        match &mut self.progress {
            Progress::Asked { early: kept, opened } => (early, look_now) = (kept.take(), *opened),
            Progress::Waiting { base, .. } if sent < *base => return None,
            Progress::Waiting { poll: before, .. } => poll = *before,
            Progress::Gone => return None,
        }
        let mut look = aligned(now, ticket_rest(&self.request));
        if ahead == 0 {
            // The head looks again when the holder's lease ends; at a foreign holder, which notifies nobody, sooner.
            if foreign {
                let most =
                    left.map_or(LONGEST_REST, |left| left / 10).clamp(SHORTEST_REST, LONGEST_REST);
                look = look.min(now + poll.min(most));
                poll = poll.saturating_mul(2).min(LONGEST_REST);
            }
            look = left.map_or(look, |left| look.min(now + left.max(SHORTEST_REST)));
        }
        self.progress = Progress::Waiting { base: sent, last, poll };
        Some(Queued { early, look: if look_now { now } else { look } })
    }

    /// A grant was pushed. It counts if this attempt waits and the grant is newer than its last "still waiting".
    pub(super) fn pushed(&mut self, tokens: Tokens, ttl: Duration, now: Instant) -> Push {
        let (since, last) = match &mut self.progress {
            Progress::Asked { early, .. } => {
                *early = Some((tokens, ttl));
                return Push::Ignored;
            }
            Progress::Waiting { base, last, .. } => (*base, *last),
            Progress::Gone => return Push::Ignored,
        };
        if tokens.first <= last {
            return Push::Ignored;
        }
        let left = (since + ttl).since(now);
        // A fixed lease must begin whole, and a short rest is not worth beginning with: a Refresh renews first.
        let fixed = !self.request.renew;
        let short = left < ttl / 2;
        if fixed || short { Push::RenewFirst } else { Push::Granted { since } }
    }
}
