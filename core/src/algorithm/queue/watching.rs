//! The watch of those in the way. Only the nearest of them are watched, so that no entry that goes wakes all that wait.

use std::sync::Arc;

use super::session::Shared;
use super::state::Stage;
use crate::port::{Failure, LockKey, OwnerId, QueueStore, Rank, SessionId, Standing};

/// The next action for an entry that waits.
enum Plan {
    /// The whole queue is to be read.
    Look(LockKey),
    /// These stand in the way; the entry itself is among them.
    Watch(SessionId, LockKey, Vec<Standing>),
}

impl<S: QueueStore> Shared<S> {
    /// Watches those in the way of an entry, and the entry itself. It holds at once if they are gone by now. Of a hold only its own
    /// entry is watched.
    pub(super) async fn watch(self: &Arc<Self>, owner: OwnerId) -> Result<(), Failure> {
        let mut watched = Vec::new();
        loop {
            let plan = self.change(|state, now, effects| {
                let session = state.live(now, effects)?.id;
                let own = state.get(owner)?;
                let (lock, rank) = (own.lock.clone(), own.rank.clone()?);
                if own.stage == Stage::Holding && own.is_watched {
                    let standing = Standing { rank, mode: own.want.mode };
                    return Some(Plan::Watch(session, lock, vec![standing]));
                }
                if own.stage != Stage::Waiting {
                    return None;
                }
                let mut known = own.to_watch();
                if known.is_empty() {
                    state.hold(owner, now, effects);
                    return None;
                }
                if own.is_outdated() {
                    return Some(Plan::Look(lock));
                }
                known.push(Standing { rank, mode: own.want.mode });
                Some(Plan::Watch(session, lock, known))
            });
            match plan {
                Some(Plan::Look(lock)) => {
                    let all = self.store.standings(&lock).await.map_err(Failure::refused)?;
                    self.change(|state, _, _| {
                        if let Some(own) = state.get(owner) {
                            own.saw(&all);
                        }
                    });
                }
                Some(Plan::Watch(session, lock, known)) if known != watched => {
                    match self.store.watch(session, &lock, &known).await {
                        Ok(gone) => self.noted(owner, &lock, &gone),
                        Err(failure) if self.ended_by(session, &failure) => return Ok(()),
                        Err(failure) => {
                            // A hold tries again with its next renewal.
                            self.change(|state, _, _| {
                                if let Some(own) = state.get(owner) {
                                    own.is_watched = false;
                                }
                            });
                            return Err(failure);
                        }
                    }
                    watched = known;
                }
                Some(Plan::Watch(..)) | None => return Ok(()),
            }
        }
    }

    /// Applies the moves that a watch has answered.
    fn noted(self: &Arc<Self>, owner: OwnerId, lock: &LockKey, gone: &[Rank]) {
        self.change(|state, now, effects| {
            for rank in gone {
                state.gone(lock, rank, now, effects);
            }
            // This one goes on by itself.
            effects.watch.retain(|other| *other != owner);
        });
    }
}
