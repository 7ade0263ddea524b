//! The steps of a lease store, answered from the sessions of this client.

use std::sync::Arc;
use std::time::Duration;

use super::super::session_lease::{doubt, queued, refusal};
use super::attempt::Ask;
use super::shared::Shared;
use super::state::{Own, Stage};
use crate::error::{Code, Error};
use crate::fence::Token;
use crate::port::{
    Action, Answer, Failure, Instant, Outcome, OwnerId, SESSION_TOKENS, SessionStore, Step, Take,
};

impl<S: SessionStore> Shared<S> {
    pub(super) async fn step(self: &Arc<Self>, step: &Step) -> Answer {
        if let Some(failure) = refusal(&step.action, self.ttl) {
            return Err(failure);
        }
        match &step.action {
            Action::Take(take) => self.take(step, take).await,
            Action::Refresh { ttl } => self.refresh(step.owner, *ttl).await,
            Action::Renew { ttl } => self.renew(step.owner, *ttl),
            Action::Free { .. } | Action::Leave { .. } => self.remove(step.owner).await,
            Action::Read => {
                let (_, session) = self.main().await.map_err(Failure::refused)?;
                let state = self.store.state(&session, &step.lock).await?;
                Ok(Outcome::State(state))
            }
            // No look tells an owner id.
            Action::Break => Ok(Outcome::Gone),
        }
    }

    async fn take(self: &Arc<Self>, step: &Step, take: &Take) -> Answer {
        if let Some(why) = self.store.refusal(take.mode) {
            return Err(unsupported(why));
        }
        let own = Own {
            lock: step.lock.clone(),
            mode: take.mode,
            stage: Stage::Asking,
            session: None,
            leaves: false,
            base: self.runtime.now(),
            ttl: take.ttl,
            ends: Instant::FAR,
            token: Token::default(),
            drawn: take.block.clamp(1, SESSION_TOKENS),
        };
        let refused = self.change(|state, _, _| {
            if state.closed {
                return Some(Err(Failure::refused(Error::closed())));
            }
            if state.left.contains(step.owner) {
                return Some(Ok(Outcome::Gone));
            }
            state.owners.insert(step.owner, own);
            None
        });
        if let Some(refused) = refused {
            return refused;
        }
        let (owner, lock) = (step.owner, step.lock.clone());
        let ask = Ask { owner, lock, mode: take.mode, wait: take.wait };
        self.carry_out(self.clone().attempt(ask)).await
    }

    async fn refresh(self: &Arc<Self>, owner: OwnerId, ttl: Duration) -> Answer {
        // Whether the server is there, the common session tells: nothing is heard in one that waits.
        let waits = self.change(|state, _, _| {
            state.owners.get(&owner).is_some_and(|own| own.stage == Stage::Waiting)
        });
        if waits {
            self.main().await.map_err(Failure::refused)?;
        }
        let waits = self.change(|state, now, effects| {
            let waits = state.owners.get(&owner)?.stage == Stage::Waiting;
            let main = state.main.and_then(|id| state.live(id, now, effects));
            let in_doubt = main.is_none_or(|live| live.is_in_doubt(now, self.ttl));
            // With the common session those may be lost that wait.
            let own = state.owners.get_mut(&owner).filter(|_| waits)?;
            own.ttl = ttl;
            if in_doubt {
                return Some(Err(doubt()));
            }
            own.base = own.base.max(now);
            Some(Ok(queued(0)))
        });
        waits.unwrap_or_else(|| self.renew(owner, ttl))
    }

    /// Answered from the session, without a request.
    fn renew(&self, owner: OwnerId, ttl: Duration) -> Answer {
        self.change(|state, now, effects| {
            let holds = |own: &&Own| own.stage == Stage::Holding;
            let id = state.owners.get(&owner).filter(holds).and_then(|own| own.session);
            let Some(live) = id.and_then(|id| state.live(id, now, effects)) else {
                return Ok(Outcome::Gone);
            };
            if live.is_in_doubt(now, self.ttl) {
                return Err(doubt());
            }
            if !ttl.is_zero() {
                state.last_until(owner, ttl, now, effects);
            }
            Ok(state.granted(owner, now, effects).unwrap_or(Outcome::Gone))
        })
    }

    /// A Free or a Leave. What was asked for in this owner's name is known here for as long as the server may have it, and what comes later is
    /// refused here: no tombstone is needed on the server.
    async fn remove(self: &Arc<Self>, owner: OwnerId) -> Answer {
        let found = self.change(|state, now, effects| {
            let Some(own) = state.owners.get_mut(&owner) else {
                state.left.add(owner);
                return None;
            };
            own.leaves = true;
            effects.news = true;
            let (stage, session, lock) = (own.stage, own.session, own.lock.clone());
            if stage != Stage::Holding {
                return Some(None);
            }
            let id = session?;
            let live = state.live(id, now, effects)?;
            // Whoever asks in this session from now on is carried out after it.
            if live.names.get(&lock) == Some(&owner) {
                live.names.remove(&lock);
            }
            let session = live.session.clone();
            state.owners.get_mut(&owner)?.stage = Stage::Leaving;
            Some(Some((id, session)))
        });
        match found {
            None => Ok(Outcome::Gone),
            Some(None) => self.gone(owner).await.map(|()| Outcome::Freed),
            Some(Some((id, session))) => {
                let shared = self.clone();
                let work = async move { shared.give_back(owner, id, &session).await };
                self.carry_out(work).await
            }
        }
    }
}

fn unsupported(why: &'static str) -> Failure {
    Failure::refused(Error::new(Code::Unsupported, why))
}
