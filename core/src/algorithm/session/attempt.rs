//! The way of an attempt: asked for in the common session, then, if it waits, in one of its own. A lock that was taken a moment ago is waited
//! for at once.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{Either, ready, select};

use super::super::session_lease::{queued, removed};
use super::open::{MOST, Numbered};
use super::shared::Shared;
use super::state::Id;
use super::state::Stage;
use crate::error::Error;
use crate::fence::Token;
use crate::port::{
    Answer, Failure, Instant, LockKey, Mode, Outcome, OwnerId, Session, SessionStore,
};

/// An answer does not wait longer for a session to be opened.
const QUICK: Duration = Duration::from_millis(50);

/// The parameters of an attempt.
#[derive(Clone)]
pub(super) struct Ask {
    pub(super) owner: OwnerId,
    pub(super) lock: LockKey,
    pub(super) mode: Mode,
    pub(super) wait: bool,
}

impl<S: SessionStore> Shared<S> {
    /// Asks for a lock. It runs to its end, whoever stays for the answer.
    pub(super) async fn attempt(self: Arc<Self>, ask: Ask) -> Answer {
        let Ask { owner, lock, mode, wait } = &ask;
        let owner = *owner;
        if *wait && let Some(error) = self.trouble_with(lock) {
            self.forget(owner);
            return Err(Failure::refused(error));
        }
        if *wait && let Some(idle) = self.idle_for(lock) {
            return self.wait_at_once(ask, idle).await;
        }
        let (id, session) = match self.session_for(owner, lock).await {
            Ok(session) => session,
            Err(error) => {
                self.forget(owner);
                return Err(Failure::refused(error));
            }
        };
        let sent = self.runtime.now();
        match session.lock(lock, *mode, false).await {
            Ok(Some(token)) => match self.holds(owner, id, token, sent) {
                Some(outcome) => Ok(outcome),
                None => self.give_back(owner, id, &session).await,
            },
            Ok(None) => {
                self.refused(lock, id, sent);
                if *wait && self.is_wanted(owner) {
                    let own = self.leave_main(owner, lock, id);
                    return self.queue(ask, own).await;
                }
                self.forget(owner);
                Ok(Outcome::Held { left: None })
            }
            Err(failure) => {
                // The lock may be there all the same.
                let _ = self.give_back(owner, id, &session).await;
                Err(failure)
            }
        }
    }

    pub(super) fn is_wanted(&self, owner: OwnerId) -> bool {
        self.change(|state, _, _| state.owners.get(&owner).is_some_and(|own| !own.leaves))
    }

    /// Why the last wait for this lock failed, if that has yet to be told.
    fn trouble_with(&self, lock: &LockKey) -> Option<Error> {
        self.change(|state, now, _| {
            state.taken(lock, now)?.trouble.as_ref()?;
            state.taken.remove(lock)?.trouble
        })
    }

    /// A session that has nothing, for a lock that somebody else had a moment ago.
    fn idle_for(&self, lock: &LockKey) -> Option<Numbered<S>> {
        self.change(|state, now, effects| {
            let taken = state.taken(lock, now).is_some();
            // A lock that is free by now takes up a session all the same: others are to find one.
            let many = state.sessions.len() + state.coming > MOST / 2;
            if taken && !many { state.take_idle(now, self.ttl, effects) } else { None }
        })
    }

    /// Somebody else has the lock.
    fn refused(&self, lock: &LockKey, id: Id, sent: Instant) {
        self.change(|state, now, effects| {
            state.takes(lock, now, None);
            if let Some(live) = state.live(id, now, effects) {
                live.answered(sent, self.ttl);
            }
        });
    }

    /// The session in which it was asked for, unless that is the common one, which has to answer others.
    fn leave_main(&self, owner: OwnerId, lock: &LockKey, asked: Id) -> Option<Numbered<S>> {
        self.change(|state, _, _| {
            if state.main != Some(asked) {
                return state.sessions.get(&asked).map(|live| (asked, live.session.clone()));
            }
            state.leave_session(owner, lock, asked);
            state.owners.get_mut(&owner)?.session = None;
            None
        })
    }

    /// The lock is there. `None`: nobody wants it any more, or it came too late.
    fn holds(&self, owner: OwnerId, id: Id, token: Token, sent: Instant) -> Option<Outcome> {
        self.change(|state, now, effects| {
            state.live(id, now, effects)?.answered(sent, self.ttl);
            let own = state.owners.get_mut(&owner).filter(|own| !own.leaves)?;
            (own.stage, own.token) = (Stage::Holding, token);
            let ttl = own.ttl;
            state.last_until(owner, ttl, now, effects);
            state.granted(owner, now, effects)
        })
    }

    /// Waits in a session of its own, beside whoever asked. If that has yet to be opened and this takes long, the answer does not wait for it.
    async fn queue(self: Arc<Self>, ask: Ask, own: Option<Numbered<S>>) -> Answer {
        let owner = ask.owner;
        let shared = self.clone();
        let opening = Box::pin(async move {
            match own {
                Some(own) => Ok(own),
                None => shared.borrow().await,
            }
        });
        let soon = self.runtime.sleep(QUICK);
        let opening = match select(opening, soon).await {
            Either::Left((Err(error), _)) => {
                self.forget(owner);
                return Err(Failure::refused(error));
            }
            Either::Left((opened, _)) => Either::Left(ready(opened)),
            Either::Right(((), opening)) => Either::Right(opening),
        };
        self.stays(owner);
        let shared = self.clone();
        self.runtime.spawn(Box::pin(async move {
            match opening.await {
                Ok(borrowed) => drop(shared.wait(ask, borrowed).await),
                Err(_) => shared.ends_untold(owner),
            }
        }));
        Ok(queued(0))
    }

    /// Waits for a lock that was taken a moment ago. What becomes of that soon is answered; else that the lock is taken, if the server
    /// answers at all.
    async fn wait_at_once(self: Arc<Self>, ask: Ask, idle: Numbered<S>) -> Answer {
        let (owner, lock) = (ask.owner, ask.lock.clone());
        let sent = self.runtime.now();
        let waiting = Box::pin(self.clone().wait(ask, idle));
        let waiting = match select(waiting, self.runtime.sleep_until(sent + QUICK)).await {
            Either::Left((answer, _)) => return answer,
            Either::Right(((), waiting)) => waiting,
        };
        if !self.stays(owner) {
            // It is on its way out, and says itself how it ended.
            return waiting.await;
        }
        self.runtime.spawn(Box::pin(async move { drop(waiting.await) }));
        let (main, session) = self.main().await.map_err(Failure::unknown)?;
        let sent = self.runtime.now();
        session.beat().await.map_err(|failure| Failure::unknown(failure.error))?;
        self.refused(&lock, main, sent);
        Ok(queued(0))
    }

    /// From now on the result of an attempt comes as a notice, not as an answer. False if the attempt is not asking any more.
    fn stays(&self, owner: OwnerId) -> bool {
        self.change(|state, _, _| {
            let asked = state.owners.get_mut(&owner).filter(|own| own.stage == Stage::Asking);
            asked.map(|own| own.stage = Stage::Waiting).is_some()
        })
    }

    /// Gives back whatever a session may have of this owner.
    pub(super) async fn give_back(
        &self,
        owner: OwnerId,
        id: Id,
        session: &Arc<S::Session>,
    ) -> Answer {
        let had = self.change(|state, _, _| {
            let own = state.owners.get_mut(&owner)?;
            own.stage = Stage::Leaving;
            Some((own.lock.clone(), own.mode))
        });
        let Some((lock, mode)) = had else { return Ok(Outcome::Gone) };
        let sent = self.runtime.now();
        let answer = session.unlock(&lock, mode).await;
        match &answer {
            Ok(_) => self.change(|state, now, effects| {
                // What waited had no deadline until now.
                if let Some(live) = state.sessions.get_mut(&id).filter(|live| !live.is_late(now)) {
                    live.answered(sent, self.ttl);
                    live.waits = false;
                    effects.earlier = true;
                }
            }),
            // Nobody knows what it has: it is ended, and all that is in it with it.
            Err(_) => self.lose(id),
        }
        self.forget(owner);
        answer.map(removed)
    }
}
