//! An attempt to become a hold, from its Take to the grant: a ticket in the queue of a lock, and what was pushed for it.

use std::task::Waker;
use std::time::Duration;

use super::hold::{Request, Tokens};
use super::lock_id::LockId;
use super::next_look::{LONGEST_REST, SHORTEST_REST, aligned, ticket_rest};
use crate::fence::Token;
use crate::port::{Instant, Outcome, OwnerId};

/// A foreign holder is first looked at after this long, then at twice that, ...
const FIRST_POLL: Duration = Duration::from_millis(10);

/// An attempt to become a hold.
pub(super) struct PendingAttempt {
    pub(super) owner: OwnerId,
    pub(super) lock: LockId,
    pub(super) request: Request,
    /// Tokens asked for: the request may change with the waiter, this does not.
    pub(super) block: u32,
    /// The furthest end that was ever asked for, answered or not.
    pub(super) asked: Instant,
    pub(super) progress: Progress,
    /// The waker of the task that waits for the ticket to become something else.
    pub(super) waiter: Option<Waker>,
    /// Whether a grant came too late, and the waiter has not been told.
    pub(super) late: bool,
}

pub(super) enum Progress {
    /// The Take is under way. A push may overtake its answer.
    Asked {
        early: Option<(Tokens, Duration)>,
        /// The lock was told to be open meanwhile.
        opened: bool,
    },
    /// In the queue.
    Waiting(WaitState),
    /// The store does not know the ticket any more.
    Gone,
}

pub(super) struct WaitState {
    /// The sending of the newest request that was answered "still waiting": what a push's lease is counted from.
    pub(super) base: Instant,
    /// The lock's counter in that answer: an older push is no grant of this wait.
    pub(super) last: Token,
    /// The rest before the next look at a foreign holder.
    pub(super) poll: Duration,
}

/// The consequences of a "still waiting".
pub(super) struct Queued {
    /// A grant that was pushed before the answer came.
    pub(super) early: Option<(Tokens, Duration)>,
    /// When the ticket is looked at again.
    pub(super) look: Instant,
}

/// The meaning of a pushed grant.
pub(super) enum Push {
    /// The answer to the Take decides.
    Kept,
    /// It is no grant of this wait.
    Stale,
    /// Too little is left of it to begin with: a Refresh renews it first.
    RenewFirst,
    /// The lock is granted, for a lease that counts from `since`.
    Granted { since: Instant },
}

impl PendingAttempt {
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
        if let Progress::Waiting(_) = self.progress {
            self.progress = Progress::Gone;
            self.wake();
        }
    }

    /// The lock was told to be open. True if the answer to the Take is awaited, which is acted on then.
    pub(super) fn opened_early(&mut self) -> bool {
        let Progress::Asked { opened, .. } = &mut self.progress else { return false };
        *opened = true;
        true
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
            Progress::Waiting(queue) if sent < queue.base => return None,
            Progress::Waiting(queue) => poll = queue.poll,
            Progress::Gone => return None,
        }
        let mut look = aligned(now, ticket_rest(&self.request));
        if ahead == 0 {
            // The head looks again when the holder's lease ends; at a foreign holder, which tells nobody, sooner.
            if foreign {
                let most =
                    left.map_or(LONGEST_REST, |left| left / 10).clamp(SHORTEST_REST, LONGEST_REST);
                look = look.min(now + poll.min(most));
                poll = poll.saturating_mul(2).min(LONGEST_REST);
            }
            look = left.map_or(look, |left| look.min(now + left.max(SHORTEST_REST)));
        }
        self.progress = Progress::Waiting(WaitState { base: sent, last, poll });
        Some(Queued { early, look: if look_now { now } else { look } })
    }

    /// A grant was pushed. It counts if this attempt waits and the grant is newer than its last "still waiting".
    pub(super) fn pushed(&mut self, tokens: Tokens, ttl: Duration, now: Instant) -> Push {
        let queue = match &mut self.progress {
            Progress::Asked { early, .. } => {
                *early = Some((tokens, ttl));
                return Push::Kept;
            }
            Progress::Waiting(queue) => queue,
            Progress::Gone => return Push::Stale,
        };
        if tokens.first <= queue.last {
            return Push::Stale;
        }
        let since = queue.base;
        let left = (since + ttl).since(now);
        // A fixed lease must begin whole, and a short rest is not worth beginning with: a Refresh renews first.
        let fixed = !self.request.renew;
        let short = left < ttl / 2;
        if fixed || short { Push::RenewFirst } else { Push::Granted { since } }
    }
}
