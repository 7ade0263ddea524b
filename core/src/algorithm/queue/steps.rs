//! The steps of a lease store, answered from the entries and the session of this client.

use std::sync::Arc;
use std::time::Duration;

use scopeguard::{ScopeGuard, guard};

use super::super::session_lease::{doubt, queued, refusal};
use super::order::{Want, to_watch};
use super::session::Shared;
use super::state::{Effects, Orphan, QueueState};
use super::state::{Own, Stage, TOKENS};
use crate::error::{Code, Error};
use crate::fence::Token;
use crate::port::{
    Action, Answer, Applied, Entry, EntryView, Failure, HolderView, Instant, Joined, LockKey,
    LockState, Outcome, OwnerId, QueueStore, SessionId, Standing, Step, Take, WaiterView,
};

impl<S: QueueStore> Shared<S> {
    pub(super) async fn step(self: &Arc<Self>, step: &Step) -> Answer {
        if let Some(failure) = refusal(&step.action, self.ttl) {
            return Err(failure);
        }
        let owner = step.owner;
        match &step.action {
            Action::Take(take) => self.take(step, take).await,
            Action::Refresh { ttl } => {
                let received = self.runtime.now();
                let watched = self.watch(owner).await;
                self.refreshed(owner, *ttl, received, watched)
            }
            Action::Renew { ttl } => self.renew(owner, *ttl),
            Action::Free { .. } | Action::Leave { tombstone: None } => self.remove(owner).await,
            Action::Leave { .. } => {
                let known = self.change(|state, _, _| {
                    let known = state.get(owner).is_some();
                    if !known {
                        state.left.add(owner);
                    }
                    known
                });
                if known { self.remove(owner).await } else { self.refuse(&step.lock, owner).await }
            }
            Action::Break => self.break_hold(&step.lock, owner).await,
            Action::Read => {
                let all = self.store.show(&step.lock).await.map_err(Failure::refused)?;
                Ok(Outcome::State(state(all)))
            }
        }
    }

    async fn take(self: &Arc<Self>, step: &Step, take: &Take) -> Answer {
        let (owner, received) = (step.owner, self.runtime.now());
        let Take { mode, limit, ttl, wait, block, .. } = *take;
        let session = self.session().await.map_err(Failure::refused)?;
        let want = Want { mode, limit };
        if !wait && let Some(taken) = self.taken(step, want).await? {
            return Ok(taken);
        }
        let own = Own::joining(step.lock.clone(), want, ttl, block);
        let left = self.change(|state, _, _| {
            let left = state.left.contains(owner);
            if !left {
                state.add(owner, own);
            }
            left
        });
        if left {
            return Ok(Outcome::Gone);
        }
        let entry = Entry { owner, mode, limit, info: take.info.clone() };
        let Some(joined) = self.join(session, &step.lock, &entry).await? else {
            return Ok(Outcome::Gone);
        };
        let kind = joined.before.first().map_or(step.kind, |first| first.mode.kind());
        let ahead = joined.before.len();
        let stage = self.change(|state, now, effects| {
            place(state, session, (&step.lock, owner), joined, effects);
            let own = state.get(owner)?;
            if !own.to_watch().is_empty() {
                own.base = received;
                let waits = wait && kind == step.kind;
                effects.watch.extend(Some(owner).filter(|_| waits));
                return Some(Stage::Waiting);
            }
            own.stage = Stage::Holding;
            state.last_until(owner, now, effects);
            Some(Stage::Holding)
        });
        match stage {
            // It was taken back meanwhile, or the session ended.
            None => Ok(Outcome::Gone),
            // What is left of a session that was silent for long may not be enough for a renewal. What was made is taken back.
            Some(Stage::Holding) if !self.is_sure_of(session).await => {
                Err(Failure::unknown(doubt().error))
            }
            Some(Stage::Holding) => self.answer_of(owner),
            // An entry that was refused. What is not confirmed goes on in the background.
            Some(_) if kind != step.kind => {
                let _ = self.remove(owner).await;
                Ok(Outcome::Conflict { kind })
            }
            Some(_) if !wait => {
                let _ = self.remove(owner).await;
                Ok(Outcome::Held { left: None })
            }
            Some(_) => Ok(queued(ahead)),
        }
    }

    /// The answer to a try if the lock is not free. An entry for it would be in the way of other tries until it is removed.
    async fn taken(&self, step: &Step, want: Want) -> Result<Option<Outcome>, Failure> {
        let all = self.store.standings(&step.lock).await.map_err(Failure::refused)?;
        // Which kind a name is in use as, an entry of this client's tells better.
        let alike = all.first().is_none_or(|first| first.mode.kind() == step.kind);
        let taken = alike && !to_watch(want, &all).is_empty();
        Ok(taken.then_some(Outcome::Held { left: None }))
    }

    /// Makes an entry. `None`: it was refused, or taken back meanwhile.
    pub(super) async fn join(
        self: &Arc<Self>,
        session: SessionId,
        lock: &LockKey,
        entry: &Entry,
    ) -> Result<Option<Joined>, Failure> {
        let owner = entry.owner;
        let orphan = Orphan { session, lock: lock.clone(), owner, rank: None };
        let unheard = guard(orphan, |orphan| {
            // Nobody stays to hear whether there is an entry.
            self.change(|state, _, effects| {
                state.remove(orphan.owner);
                effects.remove.push(orphan);
            });
        });
        let joined = self.store.join(session, lock, entry).await;
        let orphan = ScopeGuard::into_inner(unheard);
        if matches!(joined, Ok(Some(_))) {
            return joined;
        }
        self.change(|state, _, effects| {
            state.remove(owner);
            if matches!(&joined, Err(failure) if failure.applied == Applied::Unknown) {
                effects.remove.push(orphan);
            }
        });
        match joined {
            Err(failure) if self.ended_by(session, &failure) => Err(Failure::refused(ended())),
            other => other,
        }
    }

    /// The answer to a step whose owner is to hold.
    pub(super) fn answer_of(self: &Arc<Self>, owner: OwnerId) -> Answer {
        self.change(|state, now, effects| {
            state.live(now, effects);
            Ok(state.granted(owner, now).unwrap_or(Outcome::Gone))
        })
    }

    fn refreshed(
        self: &Arc<Self>,
        owner: OwnerId,
        ttl: Duration,
        received: Instant,
        watched: Result<(), Failure>,
    ) -> Answer {
        let waits = self.change(|state, now, effects| {
            let in_doubt = state.live(now, effects)?.is_in_doubt(now);
            let own = state.get(owner).filter(|own| own.stage == Stage::Waiting)?;
            own.ttl = ttl;
            let ahead = own.before.len();
            // An error leaves the base where it was.
            let answer =
                watched.and_then(|()| if in_doubt { Err(doubt()) } else { Ok(queued(ahead)) });
            if answer.is_ok() {
                // A Refresh that another one overtook does not move it back.
                own.base = own.base.max(received);
            }
            Some(answer)
        });
        waits.unwrap_or_else(|| self.renew(owner, ttl))
    }

    /// Answered from the session, without a request.
    pub(super) fn renew(self: &Arc<Self>, owner: OwnerId, ttl: Duration) -> Answer {
        self.change(|state, now, effects| {
            let Some(session) = state.live(now, effects) else { return Ok(Outcome::Gone) };
            let in_doubt = session.is_in_doubt(now);
            let Some(own) = state.get(owner).filter(|own| own.stage == Stage::Holding) else {
                return Ok(Outcome::Gone);
            };
            if in_doubt {
                return Err(doubt());
            }
            // Short holds cost no watch. From here on the holder hears at once that somebody has removed the entry.
            if !std::mem::replace(&mut own.is_watched, true) {
                effects.watch.push(owner);
            }
            if !ttl.is_zero() {
                own.ttl = ttl;
                state.last_until(owner, now, effects);
            }
            Ok(state.granted(owner, now).unwrap_or(Outcome::Gone))
        })
    }
}

/// An entry was made. If nobody here knows it any more, it is removed.
pub(super) fn place(
    state: &mut QueueState,
    session: SessionId,
    (lock, owner): (&LockKey, OwnerId),
    joined: Joined,
    effects: &mut Effects,
) {
    let present = state.is_present(session);
    let joining = |own: &&mut Own| own.stage == Stage::Joining && present;
    if let Some(own) = state.get(owner).filter(joining) {
        return own.joined(joined);
    }
    state.remove(owner);
    let (lock, rank) = (lock.clone(), Some(joined.rank));
    effects.remove.push(Orphan { session, lock, owner, rank });
}

fn ended() -> Error {
    Error::new(Code::Unavailable, "the session has ended; another one is opened")
}

/// The holders and the waiters, by the same rule by which each of them knows what it is.
fn state(all: Vec<EntryView>) -> LockState {
    let kind = all.first().map(|first| first.standing.mode.kind()).unwrap_or_default();
    let mut state = LockState { kind, ..LockState::default() };
    let mut before: Vec<Standing> = Vec::new();
    for EntryView { standing, owner, fence, limit, age, left, info } in all {
        let mode = standing.mode;
        let holds = to_watch(Want { mode, limit }, &before).is_empty();
        let token = fence.map(|fence| Token::new(fence * u64::from(TOKENS)));
        before.push(standing);
        if holds {
            state.last = state.last.max(token.unwrap_or_default());
            state.holders.push(HolderView { mode, token, left, held_for: None, info, owner });
        } else if mode.kind() == kind {
            state.waiters.push(WaiterView { mode, info, waiting_for: age });
        }
    }
    state
}
