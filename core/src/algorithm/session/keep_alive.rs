//! The work that is due for a session as time passes: heartbeats, its deadline, the ends of leases that are shorter.

use std::sync::{Arc, Weak};

use super::shared::Shared;
use super::state::Id;
use super::state::Stage;
use crate::port::{Instant, Notice, OwnerId, RuntimeHandle, Session, SessionStore};

/// A heartbeat that failed is repeated after this part of the session's ttl.
const AGAIN: u32 = 20;

/// Looks after a session until it is over, or the client is gone.
pub(super) async fn keep_alive<S: SessionStore>(
    shared: Weak<Shared<S>>,
    runtime: RuntimeHandle,
    id: Id,
) {
    loop {
        let Some(present) = shared.upgrade() else { return };
        let earlier = present.earlier.listen();
        let Some(looks) = present.tick(id) else { return };
        drop(present);
        runtime.until(looks, earlier).await;
    }
}

impl<S: SessionStore> Shared<S> {
    /// Does what is due. When to look again; `None`: the session is over.
    fn tick(self: &Arc<Self>, id: Id) -> Option<Instant> {
        let (beats, ended, session, looks) = self.change(|state, now, effects| {
            let spare = state.is_spare(id);
            let live = state.live(id, now, effects)?;
            let beats = !live.waits && now >= live.next_beat;
            if beats && spare {
                state.lose(id, effects);
                return None;
            }
            if beats {
                live.next_beat = now + self.ttl / 4;
            }
            let (mut ended, mut next) = (Vec::new(), Instant::FAR);
            for (owner, own) in &state.owners {
                if own.session != Some(id) || own.stage != Stage::Holding {
                    continue;
                }
                if own.ends <= now {
                    ended.push(*owner);
                } else {
                    next = next.min(own.ends);
                }
            }
            let live = state.sessions.get_mut(&id)?;
            let own = if live.waits { Instant::FAR } else { live.next_beat.min(live.deadline) };
            live.looks = next.min(own);
            let looks = live.looks;
            let session = live.session.clone();
            for owner in &ended {
                if let Some(own) = state.owners.get_mut(owner) {
                    own.stage = Stage::Leaving;
                }
                effects.notices.push(Notice::Gone { owner: *owner });
            }
            Some((beats, ended, session, looks))
        })?;
        for owner in ended {
            self.end_lease(owner, id, session.clone());
        }
        if beats {
            let shared = self.clone();
            self.runtime.spawn(Box::pin(async move { shared.beat(id, &session).await }));
        }
        Some(looks)
    }

    /// A lease that is shorter than the session's is over.
    fn end_lease(self: &Arc<Self>, owner: OwnerId, id: Id, session: Arc<S::Session>) {
        let shared = self.clone();
        self.runtime.spawn(Box::pin(async move {
            let _ = shared.give_back(owner, id, &session).await;
        }));
    }

    async fn beat(&self, id: Id, session: &S::Session) {
        let sent = self.runtime.now();
        let answer = session.beat().await;
        self.change(|state, now, effects| {
            // An answer that comes after the deadline does not bring the session back.
            let Some(live) = state.live(id, now, effects) else { return };
            if answer.is_ok() {
                live.answered(sent, self.ttl);
            } else if session.is_over() {
                state.lose(id, effects);
            } else {
                live.next_beat = live.next_beat.min(now + self.ttl / AGAIN);
                effects.earlier = true;
            }
        });
    }
}
