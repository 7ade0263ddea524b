//! The end of an entry. One that may still be on the store is removed again and again, until the store has confirmed that or the
//! session is over: the heartbeats of this client would keep it alive, and it would block the queue.

use std::sync::Arc;

use scopeguard::{ScopeGuard, guard};

use super::super::session_lease::removed;
use super::session::Shared;
use super::state::Orphan;
use super::state::Stage;
use crate::port::backoff::Backoff;
use crate::port::{Answer, Failure, LockKey, Outcome, OwnerId, QueueStore};

impl<S: QueueStore> Shared<S> {
    /// A Free or a Leave.
    pub(super) async fn remove(self: &Arc<Self>, owner: OwnerId) -> Answer {
        let orphan = self.change(|state, now, effects| {
            let session = state.live(now, effects)?.id;
            let own = state.get(owner)?;
            own.stage = Stage::Leaving;
            Some(Orphan { session, lock: own.lock.clone(), owner, rank: own.rank.clone() })
        });
        let Some(orphan) = orphan else { return Ok(Outcome::Gone) };
        self.take_away(orphan).await.map(removed)
    }

    /// A Leave of an attempt of which nothing is known here, after an unknown outcome.
    pub(super) async fn refuse(self: &Arc<Self>, lock: &LockKey, owner: OwnerId) -> Answer {
        let session = self.change(|state, now, effects| Some(state.live(now, effects)?.id));
        let Some(session) = session else { return Ok(Outcome::Gone) };
        let orphan = Orphan { session, lock: lock.clone(), owner, rank: None };
        self.take_away(orphan).await.map(removed)
    }

    /// Removes the entry of another client, in a session of this one.
    pub(super) async fn break_hold(self: &Arc<Self>, lock: &LockKey, owner: OwnerId) -> Answer {
        let session = self.session().await.map_err(Failure::refused)?;
        match self.store.leave(session, lock, owner, None).await {
            Ok(found) => Ok(removed(found)),
            Err(failure) => {
                self.ended_by(session, &failure);
                Err(failure)
            }
        }
    }

    /// Removes an entry. If that is not confirmed, also since nobody stays for it, the removal goes on in the background.
    pub(super) async fn take_away(self: &Arc<Self>, orphan: Orphan) -> Result<bool, Failure> {
        let orphan = guard(orphan, |orphan| self.adopt(orphan));
        let found = self.ask_to_leave(&orphan).await?;
        ScopeGuard::into_inner(orphan);
        Ok(found)
    }

    async fn ask_to_leave(self: &Arc<Self>, orphan: &Orphan) -> Result<bool, Failure> {
        let Orphan { session, lock, owner, rank } = orphan;
        match self.store.leave(*session, lock, *owner, rank.as_ref()).await {
            Ok(found) => {
                self.confirmed(orphan);
                Ok(found)
            }
            Err(failure) if self.ended_by(*session, &failure) => Ok(false),
            Err(failure) => Err(failure),
        }
    }

    /// An entry is not there any more.
    fn confirmed(self: &Arc<Self>, orphan: &Orphan) {
        let Orphan { session, lock, owner, rank } = orphan;
        self.change(|state, now, effects| {
            if !state.is_present(*session) {
                return;
            }
            if state.get(*owner).is_some_and(|own| own.stage == Stage::Leaving) {
                state.remove(*owner);
            }
            // Others of this client may wait for it.
            if let Some(rank) = rank {
                state.gone(lock, rank, now, effects);
            }
        });
    }

    /// Removes an entry in the background.
    pub(super) fn adopt(self: &Arc<Self>, orphan: Orphan) {
        let key = (orphan.owner, orphan.rank.clone());
        let first = self.change(|state, _, _| state.orphans.insert(key.clone()));
        if !first {
            return;
        }
        let (weak, runtime) = (Arc::downgrade(self), self.runtime.clone());
        self.runtime.spawn(Box::pin(async move {
            let mut backoff = Backoff::new();
            loop {
                let Some(shared) = weak.upgrade() else { return };
                let live = shared.change(|state, now, effects| {
                    state.live(now, effects).is_some_and(|session| session.id == orphan.session)
                });
                if !live || shared.ask_to_leave(&orphan).await.is_ok() {
                    shared.change(|state, _, _| state.orphans.remove(&key));
                    return;
                }
                drop(shared);
                runtime.sleep(backoff.next()).await;
            }
        }));
    }
}
