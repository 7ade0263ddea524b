//! The watch of those in the way. Only the nearest of them are watched, so that no entry that goes wakes all that wait.

use std::sync::Arc;

use scopeguard::guard;

use super::own::Stage;
use super::session::Shared;
use crate::port::{
    Failure, LockKey, Moved, Notice, OwnerId, QueueStore, Rank, SessionId, Standing,
};

/// What is to be done for an entry that waits.
enum Plan {
    /// The whole queue is to be read.
    Look(LockKey),
    /// These stand in the way; the entry itself is among them.
    Watch(SessionId, LockKey, Vec<Standing>),
    /// Nobody stands in the way.
    Enter(Entering),
}

/// An entry that is about to hold.
struct Entering {
    session: SessionId,
    owner: OwnerId,
    lock: LockKey,
    rank: Rank,
    /// Whether it first looks for an upgrade behind it.
    looks: bool,
    /// Whether it first draws a fence anew.
    draws: bool,
    /// Whether it does not hold, but joins anew.
    yields: bool,
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
                    let (mode, upgrades) = (own.mode, own.want.upgrades);
                    return Some(Plan::Watch(
                        session,
                        lock,
                        vec![Standing { rank, mode, upgrades }],
                    ));
                }
                if own.stage != Stage::Waiting {
                    return None;
                }
                let mut known = own.to_watch();
                if known.is_empty() {
                    // Of two fences the guard could have the older one, while the store shows the other.
                    if own.entering {
                        return None;
                    }
                    own.entering = true;
                    let (looks, draws, yields) = (own.looks(), own.draws(), own.is_outranked());
                    return Some(Plan::Enter(Entering {
                        session,
                        owner,
                        lock,
                        rank,
                        looks,
                        draws,
                        yields,
                    }));
                }
                if own.is_outdated() {
                    return Some(Plan::Look(lock));
                }
                let (mode, upgrades) = (own.want.mode, own.want.upgrades);
                known.push(Standing { rank, mode, upgrades });
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
                        Ok(moved) => self.noted(owner, &lock, &moved),
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
                Some(Plan::Enter(entering)) => {
                    let _entering = guard((), |()| self.entered(owner));
                    return self.enter(entering).await;
                }
                Some(Plan::Watch(..)) | None => return Ok(()),
            }
        }
    }

    /// An entry is not about to hold any more: it does, or may try again.
    fn entered(self: &Arc<Self>, owner: OwnerId) {
        self.change(|state, _, _| {
            if let Some(own) = state.get(owner) {
                own.entering = false;
            }
        });
    }

    /// What a watch has answered.
    fn noted(self: &Arc<Self>, owner: OwnerId, lock: &LockKey, moved: &[Moved]) {
        self.change(|state, now, effects| {
            for moved in moved {
                state.moved(lock, moved, now, effects);
            }
            // This one goes on by itself.
            effects.watch.retain(|other| *other != owner);
        });
    }

    /// A reader that waited holds only if no upgrade stands behind it: that one has seen it wait, and does not wait for it. The
    /// reader then joins anew, behind the upgrade.
    async fn enter(self: &Arc<Self>, entering: Entering) -> Result<(), Failure> {
        let Entering { session, owner, lock, rank, looks, draws, mut yields } = entering;
        if looks {
            let all = self.store.standings(&lock).await.map_err(Failure::refused)?;
            let upgrades = |standing: &Standing| standing.upgrades && standing.rank > rank;
            yields = all.iter().any(upgrades);
        }
        let mut fence = None;
        if draws && !yields {
            fence = match self.store.fence(session, &lock, &rank).await {
                Err(failure) if self.ended_by(session, &failure) => return Ok(()),
                drawn => drawn?,
            };
            if fence.is_none() {
                let gone = Moved { rank, mode: None };
                self.change(|state, now, effects| state.moved(&lock, &gone, now, effects));
                return Ok(());
            }
        }
        self.change(|state, now, effects| {
            let Some(own) = state.get(owner).filter(|own| own.stage == Stage::Waiting) else {
                return;
            };
            if let Some(fence) = fence {
                own.has_fence(fence);
            }
            if !yields {
                return state.hold(owner, now, effects);
            }
            state.abandon(owner, effects);
            effects.notices.push(Notice::Open { owner });
        });
        Ok(())
    }
}
