//! A wait for a lock in a session of its own, from the request to the grant or to its end.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{Either, select};

use super::attempt::Ask;
use super::open::Numbered;
use super::shared::Shared;
use super::state::Id;
use super::state::{Own, Stage};
use crate::fence::Token;
use crate::port::{Answer, Instant, Notice, Outcome, OwnerId, Session, SessionStore};

/// After so long a wait that goes on is interrupted again.
const INTERRUPTED_AGAIN: Duration = Duration::from_millis(100);
/// A grant that was waited for no longer than this part of the session's ttl counts from its request. A fixed lease is shorter by that.
const BELIEVED: u32 = 20;

impl<S: SessionStore> Shared<S> {
    /// Waits until the lock is there, or not wanted any more. An attempt that was answered "queued" is told how that ended.
    pub(super) async fn wait(self: Arc<Self>, ask: Ask, (id, session): Numbered<S>) -> Answer {
        let Ask { owner, lock, mode, .. } = ask;
        if !self.enter(owner, &lock, id) || !self.is_wanted(owner) {
            self.ends_untold(owner);
            return Ok(Outcome::Gone);
        }
        self.change(|state, _, _| {
            if let Some(live) = state.sessions.get_mut(&id) {
                live.waits = true;
            }
        });
        let asked = self.runtime.now();
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
        let failure = match answer {
            Ok(Some(token)) if self.is_wanted(owner) => {
                if let Some(since) = self.confirmed(&session, asked).await
                    && let Some(outcome) = self.enters(owner, id, token, since)
                {
                    return Ok(outcome);
                }
                None
            }
            Ok(_) => None,
            Err(failure) => Some(failure),
        };
        let waited = self.change(|state, now, _| {
            let waits = |own: &Own| !own.leaves && own.stage == Stage::Waiting;
            let waited = state.owners.get(&owner).is_some_and(waits);
            match &failure {
                // The next attempt hears it.
                Some(failure) if waited => state.takes(&lock, now, Some(failure.error.clone())),
                Some(_) => drop(state.taken.remove(&lock)),
                None => {}
            }
            waited
        });
        let given_back = self.give_back(owner, id, &session).await;
        if waited {
            self.change(|_, _, effects| effects.notices.push(Notice::Gone { owner }));
        }
        failure.map_or(given_back, Err)
    }

    /// Nothing was asked for. A waiter asks again, and hears what is wrong.
    pub(super) fn ends_untold(&self, owner: OwnerId) {
        self.change(|state, _, effects| {
            let Some(own) = state.owners.get(&owner) else { return };
            if !own.leaves && own.stage == Stage::Waiting {
                effects.notices.push(Notice::Gone { owner });
            }
            let lock = own.lock.clone();
            state.taken.remove(&lock);
            state.forget(owner, effects);
        });
    }

    /// From when on the time of a session counts that was granted a lock: from when it asked. If that was long ago, so may be the grant,
    /// and the session over: then from a heartbeat.
    async fn confirmed(&self, session: &S::Session, asked: Instant) -> Option<Instant> {
        let now = self.runtime.now();
        if now.since(asked) < self.ttl / BELIEVED {
            return Some(asked);
        }
        session.beat().await.is_ok().then_some(now)
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
            let again = self.runtime.sleep(INTERRUPTED_AGAIN);
            if let Either::Left((answer, _)) = select(locking.as_mut(), again).await {
                return answer;
            }
        }
    }

    /// A lock that was waited for is there. An attempt that was answered "queued" is told.
    fn enters(&self, owner: OwnerId, id: Id, token: Token, since: Instant) -> Option<Outcome> {
        self.change(|state, now, effects| {
            let live = state.sessions.get_mut(&id)?;
            live.waits = false;
            live.answered(since, self.ttl);
            let deadline = live.deadline;
            let own = state.owners.get_mut(&owner);
            let own = own.filter(|own| !own.leaves && now < deadline)?;
            if own.stage == Stage::Waiting {
                // What the client counts from its own request must end before the session does.
                let (ttl, drawn) = (deadline.since(own.base).min(own.ttl), own.drawn);
                effects.notices.push(Notice::Granted { owner, token, ttl, drawn });
            }
            (own.stage, own.token) = (Stage::Holding, token);
            let wanted = own.ttl;
            effects.earlier = true;
            state.last_until(owner, wanted, now, effects);
            state.granted(owner, now, effects)
        })
    }
}
