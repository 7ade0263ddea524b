//! The renewer: one per client. It refreshes tickets and renews holds, one batch per tick, believes or disbelieves what the
//! store pushes, and decides when a hold is lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use super::entries::Stage;
use super::hold::{Hold, Request, Tokens};
use super::lock_id::LockId;
use super::next_look::next_look;
use super::pending_attempt::{PendingAttempt, Progress};
use super::registry::{Abandoned, Registry};
use super::renewal_batch::BatchEntry;
use crate::error::Code;
use crate::port::limits::GRANT_TTL;
use crate::port::{Answer, Instant, Notice, Outcome, OwnerId, RuntimeHandle};
use crate::runtime::sync::Mutex;

/// See the module.
pub(crate) struct Renewer {
    pub(super) runtime: RuntimeHandle,
    pub(super) state: Mutex<Registry>,
    /// Whether the client closes. Written and relied on under the lock of the state; anybody may look.
    shut: AtomicBool,
}

/// The effect of an answer on a hold.
pub(crate) enum News {
    Lost(Arc<Hold>),
    Renewed(Arc<Hold>),
    /// When so little of the lease was left that it was in danger.
    RenewedLate(Arc<Hold>, Duration),
}

/// How a ticket's wait ended.
pub(crate) enum TicketEnd {
    /// With the lock.
    Won(Arc<Hold>),
    /// Without: the store does not know the ticket. Join anew.
    Gone,
    /// With the lock, but it was over before anybody looked. Take it back, and join anew.
    Lost,
    /// It has not ended: the store said that the lock is won, when nothing was left of the lease. It is asked again.
    Late,
}

impl Renewer {
    pub(crate) fn new(runtime: RuntimeHandle) -> Self {
        Self { runtime, state: Mutex::default(), shut: AtomicBool::new(false) }
    }

    /// An attempt is about to ask: from now on a push for it is kept. False if the client closes: nobody would take back
    /// what is won now.
    #[must_use]
    pub(crate) fn ask(&self, owner: OwnerId, lock: LockId, request: Request) -> bool {
        let pending = PendingAttempt::new(owner, lock, request, self.runtime.now());
        let mut state = self.state.lock();
        let asks = !self.is_shut();
        if asks {
            state.add(pending);
        }
        asks
    }

    /// Forgets an attempt or a hold, whatever its stage. What may lie on the store in its name is seen to by somebody else
    /// by now.
    pub(crate) fn remove(&self, owner: OwnerId) {
        self.state.lock().remove(owner);
    }

    /// Until when the store may keep what was asked for in this owner's name.
    pub(crate) fn furthest(&self, owner: OwnerId) -> Instant {
        self.state.lock().furthest(owner)
    }

    /// The attempt passes to a waiter with another request. False if what it has won or asked for does not fit them.
    pub(crate) fn set_request(&self, owner: OwnerId, request: &Request) -> bool {
        let mut state = self.state.lock();
        let Some(entry) = state.entries.get_mut(owner) else { return true };
        match &mut entry.stage {
            Stage::Held(hold) => {
                let fits = request.renew && hold.renew && hold.open == request.open;
                if fits {
                    hold.set_request(request, self.runtime.now());
                }
                fits
            }
            Stage::Pending(pending) => {
                // A fixed lease has to begin whole.
                let asked = matches!(pending.progress, Progress::Asked { .. });
                let fits = !asked || request.renew || request.ttl <= pending.request.ttl;
                if fits {
                    pending.request = request.clone();
                }
                fits
            }
            Stage::Free(_) => true,
        }
    }

    /// A Take sent at `sent` was granted with `left` left. `None`: the answer came after the deadline, or after the client was
    /// closed; it is no grant, and to be taken back.
    pub(crate) fn granted(
        &self,
        owner: OwnerId,
        tokens: Tokens,
        sent: Instant,
        left: Duration,
    ) -> Option<Arc<Hold>> {
        let now = self.runtime.now();
        let mut state = self.state.lock();
        if self.is_shut() {
            return None;
        }
        state.hold(owner, tokens, sent, left, now, &self.runtime)
    }

    /// A request sent at `sent` was answered "still waiting".
    pub(crate) fn queued(&self, owner: OwnerId, sent: Instant, outcome: &Outcome) {
        let now = self.runtime.now();
        let mut state = self.state.lock();
        if let Some((tokens, ttl)) = state.queued(owner, sent, outcome, now) {
            state.pushed(owner, tokens, ttl, now, &self.runtime);
        }
    }

    /// Completes when the ticket has become something else.
    pub(crate) fn poll_turn(&self, owner: OwnerId, context: &mut Context<'_>) -> Poll<TicketEnd> {
        let mut state = self.state.lock();
        if self.is_shut() {
            return Poll::Ready(TicketEnd::Lost);
        }
        let pending = match state.entries.get_mut(owner).map(|entry| &mut entry.stage) {
            Some(Stage::Held(hold)) => return Poll::Ready(TicketEnd::Won(hold.clone())),
            Some(Stage::Pending(pending)) => pending,
            Some(Stage::Free(_)) | None => return Poll::Ready(TicketEnd::Lost),
        };
        match &pending.progress {
            Progress::Gone => {
                state.remove(owner);
                Poll::Ready(TicketEnd::Gone)
            }
            Progress::Waiting(_) if std::mem::take(&mut pending.late) => {
                Poll::Ready(TicketEnd::Late)
            }
            Progress::Asked { .. } | Progress::Waiting(_) => {
                pending.waiter = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }

    /// The store told something. False if that is of an owner the renewer does not know.
    pub(crate) fn notice(&self, notice: &Notice) -> bool {
        let now = self.runtime.now();
        let mut state = self.state.lock();
        match *notice {
            Notice::Granted { owner, token, ttl, drawn } => {
                let tokens = Tokens { first: token, count: drawn };
                state.pushed(owner, tokens, ttl, now, &self.runtime);
                return state.entries.find(owner).is_some();
            }
            Notice::Open { owner } => {
                state.opened(owner, now);
                return state.entries.find(owner).is_some();
            }
            Notice::Gone { .. } => {}
            Notice::Gap | Notice::Look => {
                let waits = |stage: &Stage| match stage {
                    Stage::Pending(pending) => matches!(pending.progress, Progress::Waiting(_)),
                    Stage::Held(_) | Stage::Free(_) => false,
                };
                let tickets = state.entries.owners().filter(|(_, stage)| waits(stage));
                for owner in tickets.map(|(owner, _)| owner).collect::<Vec<_>>() {
                    state.look_now(owner, now);
                }
            }
        }
        true
    }

    /// The store told that nothing of this owner is left there. Returns the hold that is lost with it.
    pub(crate) fn gone(&self, owner: OwnerId) -> Option<Arc<Hold>> {
        self.state.lock().gone(owner)
    }

    /// A hold's request or deadline changed by other hands: look at it in time.
    pub(crate) fn reschedule(&self, hold: &Hold) {
        let now = self.runtime.now();
        let due = next_look(hold, hold.ttl(), now);
        self.state.lock().set_due(hold.owner, due);
    }

    /// A step of a batch sent at `sent` was answered. Returns what that means for a hold.
    pub(crate) fn answered(
        &self,
        asked: BatchEntry,
        sent: Instant,
        answer: &Answer,
    ) -> Option<News> {
        let now = self.runtime.now();
        let mut state = self.state.lock();
        let Registry { entries, due_queue, .. } = &mut *state;
        let BatchEntry { owner, slot } = asked;
        let pending = match &mut entries.at(slot, owner)?.stage {
            Stage::Free(_) => return None,
            Stage::Held(hold) if hold.is_over() => return None,
            Stage::Held(hold) => {
                let hold = hold.clone();
                return match answer {
                    Ok(Outcome::Granted { left, .. }) => {
                        let before = hold.lease_end().since(now);
                        let left = hold.prolong(sent, *left, now)?;
                        due_queue.set(entries, slot, next_look(&hold, left, now));
                        // A hold that passed on to a longer `ttl` may have begun with two thirds of `GRANT_TTL`.
                        let late = before < hold.ttl().min(GRANT_TTL) / 3;
                        Some(if late {
                            News::RenewedLate(hold, before)
                        } else {
                            News::Renewed(hold)
                        })
                    }
                    Ok(Outcome::Gone) => state.gone(owner).map(News::Lost),
                    // What lies there is no lock any more, or not in the store that was: the file was deleted or replaced.
                    Err(failure) if failure.error.code() == Code::Conflict => {
                        state.gone(owner).map(News::Lost)
                    }
                    _ => None,
                };
            }
            Stage::Pending(pending) => pending,
        };
        match (&pending.progress, answer) {
            (Progress::Waiting(_), Ok(Outcome::Granted { token, left, drawn })) => {
                let tokens = Tokens { first: *token, count: *drawn };
                // Late: the next Refresh renews it and counts from its own sending.
                let hold = state.hold(owner, tokens, sent, *left, now, &self.runtime);
                if hold.is_none() {
                    state.late(owner);
                    state.look_now(owner, now);
                }
            }
            (Progress::Waiting(_), Ok(queued @ Outcome::Queued { .. })) => {
                state.queued(owner, sent, queued, now);
            }
            (Progress::Waiting(_), Ok(Outcome::Gone)) => {
                state.gone(owner);
            }
            _ => {}
        }
        None
    }

    /// Completes when something is due or the client closes (then true).
    pub(crate) async fn rest(&self) -> bool {
        loop {
            let until = {
                let mut state = self.state.lock();
                if self.is_shut() {
                    return true;
                }
                state.due_queue.rests_until = state.due_queue.first();
                state.due_queue.rests_until
            };
            if until <= self.runtime.now() {
                return false;
            }
            let mut sleep = (until != Instant::FAR).then(|| self.runtime.sleep_until(until));
            std::future::poll_fn(|context| {
                let mut state = self.state.lock();
                if self.is_shut() || state.due_queue.rests_until < until {
                    return Poll::Ready(());
                }
                state.due_queue.task = Some(context.waker().clone());
                drop(state);
                sleep.as_mut().map_or(Poll::Pending, |sleep| sleep.as_mut().poll(context))
            })
            .await;
        }
    }

    /// Nobody asks from now on, and whoever waits is woken. Returns all there is, holds and tickets: it stays known until it
    /// is undone, however many close at once.
    pub(crate) fn shut(&self) -> (Vec<Arc<Hold>>, Vec<Abandoned>) {
        let mut state = self.state.lock();
        self.shut.store(true, Ordering::Release);
        state.due_queue.wake_task();
        state.all_woken()
    }

    /// Whether nobody asks any more.
    pub(crate) fn is_shut(&self) -> bool {
        self.shut.load(Ordering::Acquire)
    }

    /// Attempts, tickets and holds the renewer knows of.
    pub(crate) fn len(&self) -> usize {
        self.state.lock().entries.len()
    }
}
