//! The watch of those in the way. Only the nearest of them are watched, so that no entry that goes wakes all that wait.

use std::sync::Arc;

use super::own::Stage;
use super::session::Shared;
use crate::port::{
    Failure, LockKey, Moved, Notice, OwnerId, QueueStore, Rank, SessionId, Standing,
};

/// What is to be done for an entry that waits.
enum Plan {
    /// These stand in the way; the entry itself is among them.
    Watch(SessionId, LockKey, Vec<Standing>),
    /// Nobody stands in the way, but an upgrade may stand behind it.
    LookForUpgrades(LockKey, Rank),
}

impl<S: QueueStore> Shared<S> {
    /// Watches those in the way of an entry, and the entry itself. It holds at once if they are gone by now.
    pub(super) async fn watch(self: &Arc<Self>, owner: OwnerId) -> Result<(), Failure> {
        let mut watched = Vec::new();
        loop {
            let plan = self.change(|state, now, effects| {
                let session = state.live(now, effects)?.id;
                let own = state.get(owner).filter(|own| own.stage == Stage::Waiting)?;
                let (lock, rank) = (own.lock.clone(), own.rank.clone()?);
                let mut known = own.to_watch();
                if known.is_empty() {
                    return Some(Plan::LookForUpgrades(lock, rank));
                }
                let (mode, upgrades) = (own.want.mode, own.want.upgrades);
                if !mutant!(QueueOwnEntryUnwatched) {
                    known.push(Standing { rank, mode, upgrades });
                }
                Some(Plan::Watch(session, lock, known))
            });
            match plan {
                Some(Plan::Watch(session, lock, known)) if known != watched => {
                    match self.store.watch(session, &lock, &known).await {
                        Ok(moved) => self.noted(owner, &lock, &moved),
                        Err(failure) if self.ended_by(session, &failure) => return Ok(()),
                        Err(failure) => return Err(failure),
                    }
                    watched = known;
                }
                Some(Plan::LookForUpgrades(lock, rank)) => {
                    return self.look_for_upgrades(owner, &lock, &rank).await;
                }
                Some(Plan::Watch(..)) | None => return Ok(()),
            }
        }
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

    /// A reader that waited enters only if no upgrade stands behind it: that one has seen it wait, and does not wait for it.
    /// The reader then joins anew, behind the upgrade.
    async fn look_for_upgrades(
        self: &Arc<Self>,
        owner: OwnerId,
        lock: &LockKey,
        rank: &Rank,
    ) -> Result<(), Failure> {
        let all = self.store.list(lock).await.map_err(Failure::refused)?;
        let upgrades = |standing: &Standing| standing.upgrades && standing.rank > *rank;
        let yields = all.iter().any(|view| upgrades(&view.standing));
        self.change(|state, now, effects| {
            if state.get(owner).is_none_or(|own| own.stage != Stage::Waiting) {
                return;
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
