//! The wheel: one per client. It refreshes tickets and renews holds, one batch per tick, believes or disbelieves what the
//! store pushes, and decides when a hold is lost.

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use super::hold::{Hold, Terms, deadline};
use super::register::{
    Entry, LONGEST_REST, Register, SHORTEST_REST, Stage, aligned, next_look, ticket_rest,
};
use super::target::Target;
use crate::fence::Token;
use crate::port::{Action, Answer, Instant, Notice, Outcome, OwnerId, RuntimeHandle, Step};
use crate::runtime::sync::Mutex;

/// See the module.
pub(crate) struct Wheel {
    runtime: RuntimeHandle,
    state: Mutex<Register>,
}

/// What the wheel's task has to do now.
#[derive(Default)]
pub(crate) struct Work {
    /// One batch.
    pub steps: Vec<Step>,
    /// Holds whose claim ended by the clock.
    pub lost: Vec<Arc<Hold>>,
}

/// What an answer means for a hold.
pub(crate) enum News {
    Lost(Arc<Hold>),
    Renewed(Arc<Hold>),
}

/// How a ticket's wait ended.
pub(crate) enum Turn {
    /// With the lock.
    Won(Arc<Hold>),
    /// Without: the store does not know the ticket. Join anew.
    Gone,
    /// With the lock, but it was over before anybody looked. Take it back, and join anew.
    Lost,
    /// It has not ended: the store said that the lock is won, when nothing was left of the lease. It is asked again.
    Late,
}

/// A ticket nobody waits for any more.
pub(crate) struct Abandoned {
    pub lock: Target,
    pub owner: OwnerId,
    /// The lease it wanted.
    pub ttl: Duration,
    /// Until when the store may keep what was asked for.
    pub kept: Instant,
}

impl Wheel {
    pub(crate) fn new(runtime: RuntimeHandle) -> Self {
        Self { runtime, state: Mutex::default() }
    }

    /// An attempt is about to ask: from now on a push for it is kept.
    pub(crate) fn ask(&self, owner: OwnerId, lock: Target, terms: Terms) {
        let stage = Stage::Asked { early: None, opened: false };
        let (block, asked) = (terms.block(), self.runtime.now() + terms.ttl);
        let due = Instant::FAR;
        let entry = Entry { lock, terms, block, due, stage, waiter: None, late: false, asked };
        self.state.lock().entries.insert(owner, entry);
    }

    /// Forgets an attempt or a hold, whatever its stage. Returns until when the store may keep what was asked for.
    pub(crate) fn remove(&self, owner: OwnerId) -> Instant {
        self.state.lock().remove(owner)
    }

    /// The attempt passes to a waiter with other terms. False if what it has won or asked for does not fit them.
    pub(crate) fn set_terms(&self, owner: OwnerId, terms: &Terms) -> bool {
        let mut state = self.state.lock();
        let Some(entry) = state.entries.get_mut(&owner) else { return true };
        let fits = match &entry.stage {
            // A fixed lease has to begin whole.
            Stage::Asked { .. } => terms.renew || terms.ttl <= entry.terms.ttl,
            Stage::Held(hold) => terms.renew && hold.renew && hold.open == terms.open,
            Stage::Waiting(_) | Stage::Gone => true,
        };
        if !fits {
            return false;
        }
        entry.terms = terms.clone();
        if let Stage::Held(hold) = &entry.stage {
            hold.set_terms(terms, self.runtime.now());
        }
        true
    }

    /// A Take sent at `sent` was granted with `left` left. `None`: the answer came after the deadline, it is no grant.
    pub(crate) fn granted(
        &self,
        owner: OwnerId,
        token: Token,
        sent: Instant,
        left: Duration,
    ) -> Option<Arc<Hold>> {
        let now = self.runtime.now();
        let mut state = self.state.lock();
        let terms = &state.entries.get(&owner)?.terms;
        let left = if mutant!(GrantCountedWithOwnTtl) { terms.ttl } else { left };
        let sent = if mutant!(DeadlineFromReply) { now } else { sent };
        let hold = state.hold(owner, token, deadline(sent, left), left, now, &self.runtime);
        if hold.is_none() {
            state.remove(owner);
        }
        hold
    }

    /// A request sent at `sent` was answered "still waiting".
    pub(crate) fn queued(&self, owner: OwnerId, sent: Instant, outcome: &Outcome) {
        let now = self.runtime.now();
        let mut state = self.state.lock();
        if let Some((token, ttl)) = state.queued(owner, sent, outcome, now) {
            state.pushed(owner, token, ttl, now, &self.runtime);
        }
    }

    /// Completes when the ticket has become something else.
    pub(crate) fn poll_turn(&self, owner: OwnerId, context: &mut Context<'_>) -> Poll<Turn> {
        let mut state = self.state.lock();
        let Some(entry) = state.entries.get_mut(&owner) else { return Poll::Ready(Turn::Lost) };
        match &entry.stage {
            Stage::Held(hold) => Poll::Ready(Turn::Won(hold.clone())),
            Stage::Gone => {
                state.remove(owner);
                Poll::Ready(Turn::Gone)
            }
            Stage::Waiting(_) if std::mem::take(&mut entry.late) => Poll::Ready(Turn::Late),
            Stage::Asked { .. } | Stage::Waiting(_) => {
                entry.waiter = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }

    /// The store told something.
    pub(crate) fn notice(&self, notice: &Notice) {
        let now = self.runtime.now();
        let mut state = self.state.lock();
        match *notice {
            Notice::Granted { owner, token, ttl } => {
                state.pushed(owner, token, ttl, now, &self.runtime);
            }
            Notice::Open { owner } => state.opened(owner, now),
            Notice::Gap if mutant!(GapIgnored) => {}
            Notice::Gap => {
                let tickets = state
                    .entries
                    .iter()
                    .filter(|(_, entry)| matches!(entry.stage, Stage::Waiting(_)));
                for owner in tickets.map(|(owner, _)| *owner).collect::<Vec<_>>() {
                    state.look_now(owner, now);
                }
            }
        }
    }

    /// A hold's terms or deadline changed by other hands: look at it in time.
    pub(crate) fn reschedule(&self, hold: &Hold) {
        let now = self.runtime.now();
        // Not every lease is as long as is wanted: a hand-over grants less.
        let left = if mutant!(RescheduledByWantedTtl) {
            hold.ttl()
        } else {
            hold.ttl().min(hold.deadline().since(now))
        };
        let due = next_look(hold, left, now);
        self.state.lock().set_due(hold.owner, due);
    }

    /// Takes what is due.
    pub(crate) fn collect(&self) -> Work {
        let now = self.runtime.now();
        let mut state = self.state.lock();
        let mut work = Work::default();
        while let Some(&(due, owner)) = state.agenda.first().filter(|(due, _)| *due <= now) {
            state.agenda.remove(&(due, owner));
            let Some(entry) = state.entries.get_mut(&owner) else { continue };
            let (next, action) = match &entry.stage {
                Stage::Held(hold) if now >= hold.deadline() => {
                    work.lost.push(hold.clone());
                    state.remove(owner);
                    continue;
                }
                Stage::Held(hold) if hold.renew && now < hold.cap() => {
                    // Unanswered by then, it is sent again: renewing twice changes nothing.
                    let again = (hold.deadline().since(now) / 6).clamp(SHORTEST_REST, LONGEST_REST);
                    hold.asks(now + hold.ttl());
                    let again =
                        if mutant!(RenewalDiesOfOneError) { hold.deadline() } else { now + again };
                    (again.min(hold.deadline()), Some(Action::Renew { ttl: hold.ttl() }))
                }
                Stage::Held(hold) => (hold.deadline(), None),
                Stage::Waiting(_) if mutant!(TicketsNotRefreshed) => (Instant::FAR, None),
                Stage::Waiting(_) => {
                    // If it finds the ticket served, the lease is this long from then on.
                    let ttl = entry.terms.ttl;
                    entry.asked = entry.asked.max(now + ttl);
                    (aligned(now, ticket_rest(&entry.terms)), Some(Action::Refresh { ttl }))
                }
                Stage::Asked { .. } | Stage::Gone => continue,
            };
            if let Some(action) = action {
                work.steps.push(entry.lock.step(owner, action));
            }
            state.set_due(owner, next);
        }
        work
    }

    /// A step of a batch sent at `sent` was answered. Returns what that means for a hold.
    pub(crate) fn answered(&self, owner: OwnerId, sent: Instant, answer: &Answer) -> Option<News> {
        let now = self.runtime.now();
        let mut state = self.state.lock();
        let entry = state.entries.get_mut(&owner)?;
        match (&entry.stage, answer) {
            (Stage::Held(hold), Ok(Outcome::Granted { left, .. })) => {
                let hold = hold.clone();
                if !hold.prolong(sent, *left, now) {
                    return None;
                }
                state.set_due(owner, next_look(&hold, *left, now));
                Some(News::Renewed(hold))
            }
            (Stage::Held(_), Ok(Outcome::Gone)) if mutant!(GoneIsNotLost) => None,
            (Stage::Held(hold), Ok(Outcome::Gone)) => {
                let hold = hold.clone();
                state.remove(owner);
                Some(News::Lost(hold))
            }
            (Stage::Waiting(_), Ok(Outcome::Granted { token, left })) => {
                // Late: the next Refresh renews it and counts from its own sending.
                if state
                    .hold(owner, *token, deadline(sent, *left), *left, now, &self.runtime)
                    .is_none()
                {
                    state.late(owner);
                    state.look_now(owner, now);
                }
                None
            }
            (Stage::Waiting(_), Ok(queued @ Outcome::Queued { .. })) => {
                state.queued(owner, sent, queued, now);
                None
            }
            (Stage::Waiting(_), Ok(Outcome::Gone)) if !mutant!(GoneTicketKeptWaiting) => {
                entry.stage = Stage::Gone;
                entry.wake();
                None
            }
            _ => None,
        }
    }

    /// Completes when something is due or the wheel was closed (then true).
    pub(crate) async fn rest(&self) -> bool {
        loop {
            let until = {
                let mut state = self.state.lock();
                if state.closed {
                    return true;
                }
                state.rests_until = state.agenda.first().map_or(Instant::FAR, |(due, _)| *due);
                state.rests_until
            };
            if until <= self.runtime.now() {
                return false;
            }
            let mut sleep = (until != Instant::FAR).then(|| self.runtime.sleep_until(until));
            std::future::poll_fn(|context| {
                let mut state = self.state.lock();
                if state.closed || state.rests_until < until {
                    return Poll::Ready(());
                }
                state.task = Some(context.waker().clone());
                drop(state);
                sleep.as_mut().map_or(Poll::Pending, |sleep| sleep.as_mut().poll(context))
            })
            .await;
        }
    }

    /// Forgets everything, for a client that closes: holds and tickets. Whoever waits for one is woken.
    pub(crate) fn drain(&self) -> (Vec<Arc<Hold>>, Vec<Abandoned>) {
        let mut state = self.state.lock();
        state.agenda.clear();
        let (mut holds, mut tickets) = (Vec::new(), Vec::new());
        for (owner, mut entry) in std::mem::take(&mut state.entries) {
            entry.wake();
            match entry.stage {
                Stage::Held(hold) => holds.push(hold),
                Stage::Asked { .. } | Stage::Waiting(_) => {
                    let Entry { lock, terms, asked: kept, .. } = entry;
                    tickets.push(Abandoned { lock, owner, ttl: terms.ttl, kept });
                }
                Stage::Gone => {}
            }
        }
        (holds, tickets)
    }

    /// Ends the wheel's task.
    pub(crate) fn close(&self) {
        let mut state = self.state.lock();
        state.closed = true;
        state.wake_task();
    }

    /// Attempts, tickets and holds the wheel knows of.
    pub(crate) fn len(&self) -> usize {
        self.state.lock().entries.len()
    }
}
