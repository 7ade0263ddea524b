//! One ownership on the store: the attempt to become one, from its Take to the grant ([`Pending`]), then what is known of its end, on the local
//! clock ([`Hold`]).

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::task::Waker;
use std::time::Duration;

use event_listener::{Event, EventListener};

use super::due::{LONGEST_REST, SHORTEST_REST, aligned, ticket_rest};
use super::request::{LockId, Request};
use crate::fence::Token;
use crate::port::{Instant, Mode, Outcome, OwnerId, RuntimeHandle};

/// The tokens that were drawn with a grant.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tokens {
    pub first: Token,
    /// How many, one after the other: one for each local holder that may follow.
    pub count: u32,
}

/// An event that may have happened to a hold. Each happens once, and none is taken back.
#[derive(Clone, Copy)]
#[repr(u8)]
enum Flag {
    /// Its claim ended without a release.
    Lost = 1,
    /// The last local holder gave it up, and it is to be freed.
    GivenUp = 2,
    /// Its loss was reported.
    LossReported = 4,
    /// The store said that it is gone, so that there is nothing left to free.
    Gone = 8,
}

/// A hold as this client knows it. Shared by the table and the present guard.
///
/// The order of the fields matters: those that a renewal reads are in one cache line.
#[repr(C)]
pub(crate) struct Hold {
    /// The moment the lease ends, in nanoseconds of the local clock.
    deadline: AtomicU64,
    /// The lease the present holder wants, in nanoseconds.
    ttl: AtomicU64,
    /// The moment beyond which it is not renewed.
    cap: AtomicU64,
    /// The furthest end that was ever asked for, answered or not.
    asked: AtomicU64,
    /// The [`Flag`]s that are set.
    flags: AtomicU8,
    pub renew: bool,
    /// How many tokens were drawn.
    pub block: u32,
    pub owner: OwnerId,
    pub lock: LockId,
    /// The first token drawn with it.
    pub token: Token,
    /// The present local hold; 0 when the last one was given up.
    present: AtomicU64,
    signal: Event,
    /// When the present guard, or the one before it, got the lock, in nanoseconds.
    since: AtomicU64,
    /// How it holds.
    pub mode: Mode,
    pub open: bool,
    /// Whether it came from another client.
    pub adopted: bool,
    runtime: RuntimeHandle,
}

/// Until when a lease of `length`, asked for at `sent`, may be relied on: less 1 % and 2 ms for clocks that drift apart.
pub(crate) fn deadline(sent: Instant, length: Duration) -> Instant {
    sent + length.saturating_sub(length / 100 + Duration::from_millis(2))
}

/// How much the client believes of the lease that the store answers to a request sent at `sent`: never more than was asked for. A
/// store whose clock has stepped back takes what it gave before for longer. `asked` is the furthest end asked for, `ttl` the lease wanted now.
pub(crate) fn believed(lease: Duration, sent: Instant, asked: Instant, ttl: Duration) -> Duration {
    lease.min(asked.since(sent).max(ttl))
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

impl Hold {
    pub(crate) fn new(
        lock: LockId,
        owner: OwnerId,
        tokens: Tokens,
        request: &Request,
        deadline: Instant,
        runtime: &RuntimeHandle,
    ) -> Self {
        let hold = Self {
            lock,
            owner,
            token: tokens.first,
            block: tokens.count,
            renew: request.renew,
            mode: request.mode,
            open: request.open,
            adopted: request.adopts,
            runtime: runtime.clone(),
            deadline: AtomicU64::new(0),
            ttl: AtomicU64::new(0),
            cap: AtomicU64::new(u64::MAX),
            asked: AtomicU64::new(0),
            flags: AtomicU8::new(0),
            present: AtomicU64::new(0),
            signal: Event::new(),
            since: AtomicU64::new(0),
        };
        hold.set_request(request, runtime.now());
        hold.deadline.store(deadline.as_nanos(), Ordering::Release);
        hold
    }

    /// True for the first who sets it.
    fn set(&self, flag: Flag) -> bool {
        self.flags.fetch_or(flag as u8, Ordering::AcqRel) & flag as u8 == 0
    }

    fn has(&self, flag: Flag) -> bool {
        self.flags.load(Ordering::Acquire) & flag as u8 != 0
    }

    /// The last of the tokens drawn with it: what the store's counter stood at.
    pub(crate) fn newest_token(&self) -> Token {
        Token::new(self.token.get() + u64::from(self.block) - 1)
    }

    /// Whether it stands in the line of its client.
    pub(crate) fn has_line(&self) -> bool {
        self.mode.is_exclusive() && !self.adopted
    }

    /// From now on the hold serves a holder with this request.
    pub(crate) fn set_request(&self, request: &Request, now: Instant) {
        self.ttl.store(nanos(request.ttl), Ordering::Relaxed);
        let cap = request.max_hold.map_or(Instant::FAR, |hold| now + hold);
        self.cap.store(cap.as_nanos(), Ordering::Relaxed);
        self.since.store(now.as_nanos(), Ordering::Relaxed);
    }

    pub(crate) fn set_ttl(&self, ttl: Duration) {
        self.ttl.store(nanos(ttl), Ordering::Relaxed);
    }

    pub(crate) fn ttl(&self) -> Duration {
        Duration::from_nanos(self.ttl.load(Ordering::Relaxed))
    }

    pub(crate) fn cap(&self) -> Instant {
        Instant::from_nanos(self.cap.load(Ordering::Relaxed))
    }

    /// The moment the claim ends: with its lease, or with `max_hold`.
    pub(crate) fn deadline(&self) -> Instant {
        self.lease_end().min(self.cap())
    }

    /// The moment until which its lease may be relied on.
    pub(crate) fn lease_end(&self) -> Instant {
        Instant::from_nanos(self.deadline.load(Ordering::Acquire))
    }

    /// The store is asked to let it last until then.
    pub(crate) fn asks(&self, end: Instant) {
        self.asked.fetch_max(end.as_nanos(), Ordering::Relaxed);
    }

    /// Until when the store may keep it, whatever became of what was asked for and however early the claim ends.
    pub(crate) fn furthest(&self) -> Instant {
        self.lease_end().max(Instant::from_nanos(self.asked.load(Ordering::Relaxed)))
    }

    /// How long the present guard has the lock.
    pub(crate) fn held_for(&self) -> Duration {
        self.runtime.now().since(Instant::from_nanos(self.since.load(Ordering::Relaxed)))
    }

    /// Whether the claim stands at this very moment.
    pub(crate) fn is_held(&self) -> bool {
        self.is_held_under(self.cap())
    }

    /// The same for a claim that ends at `cap`.
    pub(crate) fn is_held_under(&self, cap: Instant) -> bool {
        self.runtime.now() < self.lease_end().min(cap) && !self.is_lost()
    }

    /// A renewal sent at `sent` was answered: `left` was left at the answer. Moves the deadline, never back; a claim that
    /// has ended stays ended. Returns the lease that is believed, if the claim stands.
    pub(crate) fn prolong(&self, sent: Instant, left: Duration, now: Instant) -> Option<Duration> {
        if self.is_lost() || now >= self.deadline() {
            return None;
        }
        let asked = Instant::from_nanos(self.asked.load(Ordering::Relaxed));
        let left = believed(left, sent, asked, self.ttl());
        let new = deadline(sent, left);
        self.deadline.fetch_max(new.as_nanos(), Ordering::AcqRel);
        Some(left)
    }

    /// Ends the claim; true for the first who does.
    pub(crate) fn lose(&self, gone: bool) -> bool {
        if gone {
            self.set(Flag::Gone);
        }
        let first = self.set(Flag::Lost);
        self.tell();
        first
    }

    /// Whether its loss is still to be told; true for the first who asks.
    pub(crate) fn report_lost(&self) -> bool {
        self.set(Flag::LossReported)
    }

    /// It is not renewed from now on. The table keeps it until the store has freed it, or the cleanup task is to.
    pub(crate) fn retire(&self) {
        self.set(Flag::GivenUp);
    }

    /// Whether nobody claims it any more, nor will.
    pub(crate) fn is_over(&self) -> bool {
        self.has(Flag::GivenUp) || self.is_lost()
    }

    pub(crate) fn is_lost(&self) -> bool {
        self.has(Flag::Lost)
    }

    /// The hold serves another local hold from now on; 0: none any more.
    pub(crate) fn serve(&self, number: u64) {
        self.present.store(number, Ordering::Release);
    }

    /// Whether this local hold has not been given up. One that was lost keeps its hold.
    pub(crate) fn serves(&self, number: u64) -> bool {
        self.present.load(Ordering::Acquire) == number
    }

    /// Has everybody who waits for the end of a local hold look again.
    pub(crate) fn tell(&self) {
        self.signal.notify(usize::MAX);
    }

    /// Whether the store itself said that nothing is left.
    pub(crate) fn is_gone(&self) -> bool {
        self.has(Flag::Gone)
    }

    /// Fires when the hold is lost or given up.
    pub(crate) fn on_lost(&self) -> EventListener {
        self.signal.listen()
    }

    pub(crate) fn runtime(&self) -> &RuntimeHandle {
        &self.runtime
    }
}

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

/// How a ticket's wait ended.
pub(super) enum TicketEnd {
    /// With the lock.
    Won(Arc<Hold>),
    /// Without: the store does not know the ticket. Join anew.
    Gone,
    /// With the lock, but it was over before anybody looked. Take it back, and join anew.
    Lost,
    /// It has not ended: the store said that the lock is won, when nothing was left of the lease. It is asked again.
    Late,
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

/// Whether a grant's token lies below one that was seen before it was asked for: a guarded resource would refuse it, and take a stale one.
pub(super) fn is_behind(token: Token, floor: Token) -> bool {
    token < floor
}
