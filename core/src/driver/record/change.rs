//! Change: from upgradeable to writer, and down again.

use std::time::Duration;

use super::holder::left;
use super::{Record, Scene};
use crate::fence::Token;
use crate::port::{Mode, Notice, Outcome, OwnerId};

impl Record {
    pub(super) fn change(
        &mut self,
        owner: OwnerId,
        turn: u32,
        mode: Mode,
        ttl: u64,
        scene: &mut Scene<'_>,
    ) -> Outcome {
        let now = scene.now;
        self.renew(owner, ttl, now);
        let place = self.holders.iter().position(|holder| holder.owner == owner);
        let outcome = place.map_or(Outcome::Gone, |at| self.turn(at, turn, mode, scene));
        self.settle(owner, scene);
        outcome
    }

    /// Turns the hold at this place.
    fn turn(&mut self, at: usize, turn: u32, mode: Mode, scene: &Scene<'_>) -> Outcome {
        let now = scene.now;
        let alone = self.holders.len() == 1;
        let holder = &mut self.holders[at];
        if turn < holder.turn {
            return Outcome::Held { left: Some(self.soonest(now)) };
        }
        holder.turn = turn;
        match (holder.mode, mode) {
            (Mode::Upgradeable, Mode::Write) => {
                holder.upgrading = Some(scene.channel.clone());
                if !alone {
                    let others = self.holders.len() - 1;
                    return self.queued(others, now);
                }
                self.become_writer(at, now);
            }
            (from, to) if from == to => holder.upgrading = None,
            (Mode::Write, Mode::Upgradeable | Mode::Read) | (Mode::Upgradeable, Mode::Read) => {
                holder.mode = mode;
                holder.upgrading = None;
            }
            _ => return Outcome::Held { left: Some(self.soonest(now)) },
        }
        let holder = &self.holders[at];
        Outcome::Granted { token: Token::new(holder.token), left: left(holder.ends, now), drawn: 1 }
    }

    /// The last of the others is gone: whoever waits to become the writer is, and may ask.
    pub(super) fn finish_upgrade(&mut self, scene: &mut Scene<'_>) {
        if !self.has_token(scene.now) {
            return;
        }
        let [holder] = &mut self.holders[..] else { return };
        let Some(channel) = holder.upgrading.take() else { return };
        let owner = holder.owner;
        self.become_writer(0, scene.now);
        scene.notices.push((channel, Notice::Open { owner }));
    }

    fn become_writer(&mut self, at: usize, now: u64) {
        let ttl = self.holders[at].ends.saturating_sub(now);
        let token = self.draw(1, Duration::ZERO, ttl, now).0;
        let holder = &mut self.holders[at];
        (holder.mode, holder.upgrading, holder.token) = (Mode::Write, None, token);
    }
}
