//! The end of a hold: passed on inside, freed with the next one's Take, or freed; and its extension.

use std::sync::Arc;
use std::time::Duration;

use futures_channel::oneshot;

use super::cohort::{Local, Next, Turn};
use super::core::Core;
use super::hold::Hold;
use super::lease::{Attempt, Prelude};
use super::target::Target;
use super::undo::{Undo, released};
use crate::error::{Code, Error, Result};
use crate::port::limits::{GRANT_TTL, TICKET_LIFE};
use crate::port::{Action, Instant, Outcome, OwnerId};
use crate::released::Released;

/// What became of a hold that was given up.
pub(crate) enum GivenUp {
    /// The next one inside has it.
    Passed,
    /// It is freed in one batch with the next one's Take; the answer comes here.
    HandedOver(oneshot::Receiver<Released>),
    /// It has to be freed.
    Free(Arc<Hold>),
    /// It was lost, or given up before.
    NotMine,
}

impl Core {
    /// Gives a local hold up. Everything that must happen has been set off when this returns.
    pub(crate) fn give_up(self: &Arc<Self>, local: &Local) -> GivenUp {
        let now = self.runtime.now();
        if !local.hold.is_held() && !mutant!(LostHoldPassedOn) {
            self.lose(&local.hold, false);
        }
        let next = self.cohorts.lock().give_up(local, now);
        if !local.hold.serves(local.number) {
            local.hold.tell();
        }
        match next {
            Next::Passed => {
                if local.hold.cap() != Instant::FAR {
                    self.wheel.reschedule(&local.hold);
                }
                GivenUp::Passed
            }
            Next::Free(hold) => {
                self.retire(&hold);
                GivenUp::Free(hold)
            }
            Next::HandOver(hold, waiting) => {
                self.retire(&hold);
                let (reply, answer) = oneshot::channel();
                let prelude = self.prelude(&hold, Some(reply));
                let (lock, terms) = (hold.lock.clone(), waiting.terms.clone());
                let attempt =
                    Box::new(Attempt::new(self.clone(), lock.clone(), terms, true, Some(prelude)));
                if let Err(Turn::Lead(attempt)) = waiting.tell(Turn::Lead(Some(attempt))) {
                    self.pass_leadership(&lock, attempt);
                }
                GivenUp::HandedOver(answer)
            }
            Next::NotMine => {
                let hold = &local.hold;
                if hold.is_lost() && !hold.is_gone() {
                    // The claim ended by the clock; the store may still keep the lease of an unanswered renewal.
                    self.free_later(&hold.lock, self.prelude(hold, None));
                }
                GivenUp::NotMine
            }
        }
    }

    fn retire(&self, hold: &Hold) {
        if !mutant!(RenewAfterRelease) {
            self.wheel.remove(hold.owner);
        }
    }

    pub(super) fn prelude(&self, hold: &Hold, reply: Option<oneshot::Sender<Released>>) -> Prelude {
        let until = self.runtime.now() + hold.ttl();
        let lasts = hold.deadline();
        Prelude { owner: hold.owner, open: hold.open, until, lasts, doubtful: false, reply }
    }

    /// Frees a hold by the housekeeping.
    pub(crate) fn free_later(&self, lock: &Target, free: Prelude) {
        let Prelude { owner, open, until, lasts, doubtful, reply } = free;
        let action = Action::Free { open };
        self.undo.send(Undo { lock: lock.clone(), owner, action, until, doubtful, lasts, reply });
    }

    /// Takes an attempt back by the housekeeping, whatever became of it: a ticket, a grant, or a Take still under way.
    pub(super) fn leave_later(&self, lock: &Target, owner: OwnerId, tombstone: Option<Duration>) {
        // A ticket nobody refreshes, and the grant it may yet get, end by themselves.
        let until = self.runtime.now() + tombstone.unwrap_or(TICKET_LIFE + GRANT_TTL);
        let action = Action::Leave { tombstone };
        let (lock, doubtful, lasts) = (lock.clone(), false, until);
        self.undo.send(Undo { lock, owner, action, until, doubtful, lasts, reply: None });
    }

    /// Frees a hold now; if the caller does not stay for the answer, the housekeeping sees to it.
    pub(crate) async fn free(self: &Arc<Self>, hold: Arc<Hold>) -> Released {
        let mut freeing = Freeing { core: self, hold: &hold, confirmed: false };
        let action = Action::Free { open: hold.open };
        let step = hold.lock.step(hold.owner, action);
        let answer = self.store.step(vec![step]).await.pop();
        match answer {
            Some(Ok(outcome)) => {
                freeing.confirmed = true;
                released(&outcome)
            }
            Some(Err(_)) | None => Released::Unconfirmed,
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
        hold.set_ttl(ttl);
        let sent = self.runtime.now();
        let step = hold.lock.step(hold.owner, Action::Renew { ttl });
        match self.store.step(vec![step]).await.pop() {
            Some(Ok(Outcome::Granted { left, .. })) => {
                let stands = hold.prolong(sent, left, self.runtime.now());
                self.wheel.reschedule(hold);
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
        if let GivenUp::Free(hold) = self.give_up(local)
            && !mutant!(CancelForgets)
        {
            self.free_later(&hold.lock, self.prelude(&hold, None));
        }
    }
}

/// A Free under way.
struct Freeing<'a> {
    core: &'a Arc<Core>,
    hold: &'a Hold,
    confirmed: bool,
}

impl Drop for Freeing<'_> {
    fn drop(&mut self) {
        if !self.confirmed && !mutant!(CancelForgets) {
            self.core.free_later(&self.hold.lock, self.core.prelude(self.hold, None));
        }
    }
}
