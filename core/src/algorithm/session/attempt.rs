//! The way of an attempt: asked for in the common session, then, if it waits, in one of its own.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{Either, ready, select};

use super::live::Id;
use super::open::Numbered;
use super::own::Stage;
use super::shared::Shared;
use crate::error::Result;
use crate::fence::Token;
use crate::port::{
    Answer, Failure, Instant, LockKey, Mode, Notice, Outcome, OwnerId, Session, SessionStore,
};

/// An answer does not wait longer for a session to be opened.
const QUICK: Duration = Duration::from_millis(50);
/// After so long a wait that goes on is interrupted again.
const INTERRUPTED_AGAIN: Duration = Duration::from_millis(100);

/// What an attempt asks for.
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
                self.answered(id, sent);
                if *wait && self.is_wanted(owner) {
                    return self.queue(ask, id).await;
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

    fn is_wanted(&self, owner: OwnerId) -> bool {
        self.change(|state, _, _| state.owners.get(&owner).is_some_and(|own| !own.leaves))
    }

    fn answered(&self, id: Id, sent: Instant) {
        self.change(|state, now, effects| {
            if let Some(live) = state.live(id, now, effects) {
                live.answered(sent, self.ttl);
            }
        });
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
    async fn queue(self: Arc<Self>, ask: Ask, asked: Id) -> Answer {
        let owner = ask.owner;
        let own = self.change(|state, _, _| {
            if state.main != Some(asked) {
                return state.sessions.get(&asked).map(|live| (asked, live.session.clone()));
            }
            state.leave_session(owner, &ask.lock, asked);
            state.owners.get_mut(&owner)?.session = None;
            None
        });
        let shared = self.clone();
        let opening = Box::pin(async move {
            match own {
                Some(own) => Ok(own),
                None => shared.borrow().await,
            }
        });
        let soon = self.runtime.sleep_until(self.runtime.now() + QUICK);
        let opening = match select(opening, soon).await {
            Either::Left((Err(error), _)) => {
                self.forget(owner);
                return Err(Failure::refused(error));
            }
            Either::Left((opened, _)) => Either::Left(ready(opened)),
            Either::Right(((), opening)) => Either::Right(opening),
        };
        self.change(|state, _, _| {
            if let Some(own) = state.owners.get_mut(&owner) {
                own.stage = Stage::Waiting;
            }
        });
        let shared = self.clone();
        self.runtime.spawn(Box::pin(async move { shared.wait(ask, opening).await }));
        let last = Token::default();
        Ok(Outcome::Queued { last, left: None, ahead: 0, foreign: false })
    }

    /// Waits until the lock is there, or not wanted any more.
    async fn wait(self: Arc<Self>, ask: Ask, opening: impl Future<Output = Result<Numbered<S>>>) {
        let Ask { owner, lock, mode, .. } = ask;
        let borrowed = opening.await.ok();
        let Some((id, session)) = borrowed.filter(|(id, _)| self.enter(owner, &lock, *id)) else {
            // Whoever waits asks again, and hears what is wrong.
            let told = self.is_wanted(owner);
            self.forget(owner);
            if told {
                self.change(|_, _, effects| effects.notices.push(Notice::Gone { owner }));
            }
            return;
        };
        self.change(|state, _, _| {
            if let Some(live) = state.sessions.get_mut(&id) {
                live.waits = true;
            }
        });
        let answer = {
            let mut locking = pin!(session.lock(&lock, mode, true));
            loop {
                let news = self.news.listen();
                if !self.is_wanted(owner) {
                    break self.interrupt(&session, locking).await;
                }
                if let Either::Left((answer, _)) = select(locking.as_mut(), news).await {
                    break answer;
                }
            }
        };
        if let Ok(Some(token)) = answer
            && self.is_wanted(owner)
        {
            // It may have been granted long ago: what counts is that the session is there now.
            let sent = self.runtime.now();
            if session.beat().await.is_ok() && self.enters(owner, id, token, sent) {
                return;
            }
        }
        let told = self.is_wanted(owner);
        let _ = self.give_back(owner, id, &session).await;
        if told {
            self.change(|_, _, effects| effects.notices.push(Notice::Gone { owner }));
        }
    }

    /// Ends a wait. The server may not have begun it when it is interrupted, and begins it all the same: so it is interrupted again,
    /// until it ends.
    async fn interrupt<T>(
        &self,
        session: &S::Session,
        mut locking: Pin<&mut impl Future<Output = T>>,
    ) -> T {
        loop {
            session.interrupt().await;
            if mutant!(SessionInterruptedOnce) {
                return locking.await;
            }
            let again = self.runtime.sleep_until(self.runtime.now() + INTERRUPTED_AGAIN);
            if let Either::Left((answer, _)) = select(locking.as_mut(), again).await {
                return answer;
            }
        }
    }

    /// A lock that was waited for is there; whoever waits is told.
    fn enters(&self, owner: OwnerId, id: Id, token: Token, sent: Instant) -> bool {
        self.change(|state, now, effects| {
            let Some(live) = state.sessions.get_mut(&id) else { return false };
            live.waits = false;
            live.answered(sent, self.ttl);
            let deadline = live.deadline;
            let own = state.owners.get_mut(&owner).filter(|own| !own.leaves && now < deadline);
            let Some(own) = own else { return false };
            (own.stage, own.token) = (Stage::Holding, token);
            // What the client counts from its own request must end before the session does.
            let (wanted, drawn) = (own.ttl, own.drawn);
            let ttl = deadline.since(own.base).min(wanted);
            effects.notices.push(Notice::Granted { owner, token, ttl, drawn });
            effects.earlier = true;
            state.last_until(owner, wanted, now, effects);
            true
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
        let other = if mutant!(SessionUnlocksElsewhere) { self.main_session() } else { None };
        let answer = other.as_ref().unwrap_or(session).unlock(&lock, mode).await;
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
        answer.map(|had| if had { Outcome::Freed } else { Outcome::Gone })
    }
}
