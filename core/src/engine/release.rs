//! The end of a hold: passed on inside, freed with the next one's Take, or freed; and its extension.

use std::sync::Arc;
use std::time::Duration;

use scopeguard::{ScopeGuard, guard};

use super::Engine;
use super::attempt::Attempt;
use super::cleanup::{Batch, Cleanup, released};
use super::due::LONGEST_REST;
use super::hold::Hold;
use super::line::{Local, Next, Turn};
use super::request::LockId;
use crate::error::{Code, Error, Result};
use crate::port::limits::{GRANT_TTL, TICKET_LIFE};
use crate::port::{Action, Answer, Instant, Outcome, OwnerId};
use crate::released::Released;

/// The result of giving up a hold.
pub(crate) enum GivenUp {
    /// The next one inside has it.
    Passed,
    /// It is freed in one batch with the next one's Take.
    HandedOver(Arc<Hold>, Batch),
    /// It has to be freed.
    Free(Arc<Hold>),
    /// It was lost, or given up before.
    NotMine,
}

/// When a lease that ends then has ended by every clock.
fn certainly_after(ends: Instant, now: Instant) -> Instant {
    ends + ends.since(now) / 50 + LONGEST_REST
}

impl Engine {
    /// Gives a local hold up. Everything that must happen has been set off when this returns.
    pub(crate) fn give_up(self: &Arc<Self>, local: &Local) -> GivenUp {
        let now = self.runtime.now();
        if !local.hold.is_held() {
            self.lose(&local.hold, false);
        }
        let next = self.table.lock().lines.give_up(local, now);
        if !local.hold.serves(local.number) {
            local.hold.tell();
        }
        match next {
            Next::Passed => {
                if local.hold.cap() != Instant::FAR {
                    self.table.lock().reschedule(&local.hold, now);
                }
                GivenUp::Passed
            }
            Next::Free(hold) => {
                hold.retire();
                GivenUp::Free(hold)
            }
            Next::HandOver(hold, waiting) => {
                hold.retire();
                let (attempt, batch) = Attempt::after(self.clone(), &hold, waiting.request.clone());
                let turn = Turn::Lead(Some(Box::new(attempt)));
                if let Err(Turn::Lead(attempt)) = waiting.send(turn) {
                    self.pass_leadership(&hold.lock, attempt);
                }
                GivenUp::HandedOver(hold, batch)
            }
            Next::NotMine => {
                let hold = &local.hold;
                if hold.is_lost() && !hold.is_gone() {
                    // The claim ended by the clock; the store may still keep the lease of an unanswered renewal.
                    self.free_later(hold);
                }
                GivenUp::NotMine
            }
        }
    }

    /// Frees a hold by the cleanup task.
    pub(crate) fn free_later(&self, hold: &Hold) {
        self.pass_on(hold.owner, || self.cleanup.send(self.cleanup_of(hold)));
    }

    /// The same for one that is being freed already.
    fn finish_later(&self, hold: &Hold, begun: Batch) {
        self.pass_on(hold.owner, || self.cleanup.finish(self.cleanup_of(hold), begun));
    }

    /// Moves an entry from the table to the cleanup task. It adds before it removes, so a close always finds it.
    fn pass_on(&self, owner: OwnerId, tell: impl FnOnce()) {
        tell();
        self.table.lock().forget(owner);
    }

    /// The end of a hold, noted and to be repeated until the store has confirmed it or the lease has certainly ended.
    fn cleanup_of(&self, hold: &Hold) -> Cleanup {
        let until = self.note_end(hold);
        let action = Action::Free { open: hold.open };
        Cleanup { lock: hold.lock.clone(), owner: hold.owner, action, until, settled: None }
    }

    /// Notes that a hold was given back. When nothing can be left of it.
    fn note_end(&self, hold: &Hold) -> Instant {
        let now = self.runtime.now();
        let until = certainly_after(hold.furthest().max(now + hold.ttl()), now);
        self.recent_releases.note(&hold.lock, hold.owner, until);
        until
    }

    /// Takes an attempt back by the cleanup task, whatever became of it: a ticket, a grant, or a Take still under way.
    pub(super) fn leave_later(&self, lock: &LockId, owner: OwnerId, tombstone: Option<Duration>) {
        let now = self.runtime.now();
        // A ticket nobody refreshes, and the grant it may yet get, end by themselves.
        let least = now + tombstone.unwrap_or(TICKET_LIFE + GRANT_TTL);
        // One that was served may have become a whole lease.
        let kept = self.table.lock().furthest(owner);
        let until = least.max(certainly_after(kept, now));
        self.recent_releases.note(lock, owner, until);
        let (lock, action) = (lock.clone(), Action::Leave { tombstone });
        self.pass_on(owner, || {
            self.cleanup.send(Cleanup { lock, owner, action, until, settled: None });
        });
    }

    /// Frees a hold now; if the caller does not stay for the answer, the cleanup task sees to it.
    pub(crate) async fn free(self: &Arc<Self>, hold: Arc<Hold>) -> Released {
        let unconfirmed = guard((), |()| self.free_unconfirmed(&hold, None));
        let action = Action::Free { open: hold.open };
        let step = hold.lock.step(hold.owner, action);
        let answer = self.store.step(vec![step]).await.pop();
        if matches!(answer, Some(Ok(_))) {
            ScopeGuard::into_inner(unconfirmed);
        }
        self.freed(&hold, answer)
    }

    /// The same for a hold whose end goes with the next one's Take. It is carried on here as well, because nobody knows
    /// when the next one is polled.
    pub(crate) async fn hand_over(self: &Arc<Self>, hold: Arc<Hold>, batch: Batch) -> Released {
        let mut unconfirmed =
            guard(Some(batch.clone()), |begun| self.free_unconfirmed(&hold, begun));
        let answer = batch.await.into_iter().next();
        *unconfirmed = None;
        if matches!(answer, Some(Ok(_))) {
            ScopeGuard::into_inner(unconfirmed);
        }
        self.freed(&hold, answer)
    }

    /// The result of a release, by the answer to its Free.
    fn freed(&self, hold: &Hold, answer: Option<Answer>) -> Released {
        match answer {
            Some(Ok(outcome)) => {
                self.note_end(hold);
                self.table.lock().forget(hold.owner);
                match released(&outcome) {
                    // The client's close frees it as well, and may have come first.
                    Released::AlreadyLost if self.is_closed() => Released::Unconfirmed,
                    Released::AlreadyLost => {
                        // Nobody may have looked before, and not everybody reads this answer.
                        self.report_loss(hold, true);
                        Released::AlreadyLost
                    }
                    released => released,
                }
            }
            Some(Err(_)) | None => Released::Unconfirmed,
        }
    }

    /// The Free of a hold was not confirmed, or nobody stayed for the answer. `begun` is the batch it goes with, unless that
    /// has its answers.
    fn free_unconfirmed(&self, hold: &Hold, begun: Option<Batch>) {
        match begun {
            Some(batch) => self.finish_later(hold, batch),
            None => self.free_later(hold),
        }
    }

    /// Pushes the end of a hold to at least now + `ttl`, which is its lease from now on.
    pub(crate) async fn extend(self: &Arc<Self>, local: &Local, ttl: Duration) -> Result<()> {
        let hold = &local.hold;
        if !hold.serves(local.number) {
            return Err(Error::not_held());
        }
        let lost = || {
            Error::new(Code::Lost, "the lock was lost before it could be extended")
                .with("name", hold.lock.as_str())
        };
        if !hold.is_held() {
            return Err(lost());
        }
        let sent = self.runtime.now();
        hold.asks(sent + ttl);
        let step = hold.lock.step(hold.owner, Action::Renew { ttl });
        match self.store.step(vec![step]).await.pop() {
            Some(Ok(Outcome::Granted { left, .. })) => {
                hold.set_ttl(ttl);
                let stands = hold.prolong(sent, left, self.runtime.now()).is_some();
                self.table.lock().reschedule(hold, self.runtime.now());
                if stands { Ok(()) } else { Err(lost()) }
            }
            Some(Ok(_)) => {
                self.lose(hold, true);
                Err(lost())
            }
            Some(Err(failure)) => Err(failure.error.with("name", hold.lock.as_str())),
            None => Err(Error::internal("the store gave no answer")),
        }
    }

    /// Gives a local hold up without staying for the answer.
    pub(crate) fn abandon(self: &Arc<Self>, local: &Local) {
        match self.give_up(local) {
            GivenUp::Free(hold) => self.free_later(&hold),
            GivenUp::HandedOver(hold, batch) => self.finish_later(&hold, batch),
            GivenUp::Passed | GivenUp::NotMine => {}
        }
    }
}
