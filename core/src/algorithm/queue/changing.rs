//! Changes of a hold's mode. An upgrade is a second entry of the holder, and its rank is the new token. While it is there, no new
//! reader enters. A lesser mode is written into the entry, in its place.

use std::sync::Arc;
use std::time::Duration;

use super::own::Stage;
use super::session::Shared;
use super::state::Orphan;
use super::steps::place;
use crate::fence::Token;
use crate::port::{
    Answer, Entry, Kind, Mode, Moved, Outcome, OwnerId, QueueStore, Rank, SessionId, Step,
};

/// What a change leads to.
enum Plan {
    Answer(Outcome),
    /// This entry of the upgrade is to be made.
    Join(SessionId, OwnerId),
    /// The entry of the upgrade waits.
    Watch(OwnerId),
    /// The entry of the upgrade is removed, and the entry of the hold is given the mode.
    Lessen(SessionId, Option<Orphan>, Option<Rank>),
}

impl<S: QueueStore> Shared<S> {
    pub(super) async fn change_mode(
        self: &Arc<Self>,
        step: &Step,
        turn: u32,
        mode: Mode,
        ttl: Duration,
    ) -> Answer {
        if step.kind != Kind::ReadWrite {
            return Ok(Outcome::Gone);
        }
        match self.plan(step.owner, turn, mode, ttl) {
            Plan::Answer(outcome) => Ok(outcome),
            Plan::Join(session, upgrade) => self.join_upgrade(step, session, upgrade).await,
            Plan::Watch(upgrade) => {
                self.watch(upgrade).await?;
                Ok(self.upgrading(step.owner))
            }
            Plan::Lessen(session, upgrade, rank) => {
                if let Some(upgrade) = upgrade {
                    self.take_away(upgrade).await?;
                }
                if let Some(rank) = rank {
                    self.weaken(step, session, &rank, mode).await?;
                }
                self.answer_of(step.owner)
            }
        }
    }

    fn plan(self: &Arc<Self>, owner: OwnerId, turn: u32, mode: Mode, ttl: Duration) -> Plan {
        let drawn = OwnerId::draw(&*self.runtime);
        self.change(|state, now, effects| {
            let Some(session) = state.live(now, effects).map(|session| session.id) else {
                return Plan::Answer(Outcome::Gone);
            };
            let Some(own) = state.get(owner).filter(|own| own.stage == Stage::Holding) else {
                return Plan::Answer(Outcome::Gone);
            };
            if turn < own.turn {
                return Plan::Answer(Outcome::Held { left: None });
            }
            own.turn = turn;
            let (from, upgrade) = (own.mode, own.upgrade);
            if !ttl.is_zero() {
                own.ttl = ttl;
                state.last_until(owner, now, effects);
            }
            let upgrade = upgrade.filter(|upgrade| state.get(*upgrade).is_some());
            match (from, mode, upgrade) {
                (Mode::Upgradeable, Mode::Write, None) => {
                    state.begins_upgrade(owner, drawn, ttl);
                    return Plan::Join(session, drawn);
                }
                (Mode::Upgradeable, Mode::Write, Some(upgrade)) => return Plan::Watch(upgrade),
                (Mode::Write, Mode::Write, _) => {
                    return Plan::Answer(state.granted(owner, now).unwrap_or(Outcome::Gone));
                }
                (Mode::Write | Mode::Upgradeable, Mode::Upgradeable, _)
                | (Mode::Write | Mode::Upgradeable | Mode::Read, Mode::Read, _) => {}
                _ => return Plan::Answer(Outcome::Held { left: None }),
            }
            let leaving = upgrade.and_then(|owner| {
                let own = state.get(owner)?;
                own.stage = Stage::Leaving;
                let (lock, rank) = (own.lock.clone(), own.rank.clone());
                Some(Orphan { session, lock, owner, rank })
            });
            let Some(own) = state.get(owner) else { return Plan::Answer(Outcome::Gone) };
            (own.mode, own.upgrade) = (mode, None);
            let stronger = own.want.mode != mode;
            Plan::Lessen(session, leaving, own.rank.clone().filter(|_| stronger))
        })
    }

    /// Makes the second entry.
    async fn join_upgrade(
        self: &Arc<Self>,
        step: &Step,
        session: SessionId,
        owner: OwnerId,
    ) -> Answer {
        let (main, info) = (step.owner, "{}".into());
        let entry = Entry { owner, mode: Mode::Write, limit: 1, upgrades: true, info };
        let Some(joined) = self.join(session, &step.lock, &entry).await? else {
            return Ok(self.upgrading(main));
        };
        self.change(|state, _, effects| {
            place(state, session, (&step.lock, owner), joined, effects);
            // The hold may have ended, or have become a lesser one.
            if state.get(main).is_none_or(|main| main.upgrade != Some(owner)) {
                state.abandon(owner, effects);
            }
            let Some(own) = state.get(owner) else { return };
            if own.to_watch().is_empty() {
                own.stage = Stage::Holding;
                state.becomes_writer(main, owner);
            } else {
                effects.watch.push(owner);
            }
        });
        Ok(self.upgrading(main))
    }

    /// How far the upgrade of a hold is.
    fn upgrading(self: &Arc<Self>, main: OwnerId) -> Outcome {
        self.change(|state, now, effects| {
            state.live(now, effects);
            let Some(own) = state.get(main).filter(|own| own.stage == Stage::Holding) else {
                return Outcome::Gone;
            };
            let (mode, upgrade) = (own.mode, own.upgrade);
            if mode == Mode::Write {
                return state.granted(main, now).unwrap_or(Outcome::Gone);
            }
            let before = upgrade.and_then(|upgrade| state.get(upgrade)).map(|own| own.before.len());
            let ahead = before.and_then(|count| u32::try_from(count).ok()).unwrap_or_default();
            Outcome::Queued { last: Token::default(), left: None, ahead, foreign: false }
        })
    }

    async fn weaken(
        self: &Arc<Self>,
        step: &Step,
        session: SessionId,
        rank: &Rank,
        mode: Mode,
    ) -> Result<(), crate::port::Failure> {
        match self.store.weaken(session, &step.lock, rank, mode).await {
            Ok(true) => self.change(|state, _, _| {
                if let Some(own) = state.get(step.owner) {
                    own.want.mode = mode;
                }
            }),
            Ok(false) => self.change(|state, now, effects| {
                let gone = Moved { rank: rank.clone(), mode: None };
                state.moved(&step.lock, &gone, now, effects);
            }),
            Err(failure) if self.ended_by(session, &failure) => {}
            Err(failure) => return Err(failure),
        }
        Ok(())
    }
}
