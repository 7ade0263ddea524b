//! Change: from upgradeable to writer, and down again.

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
        let outcome = self.renew(owner, ttl, now).map(|_| self.turn(owner, turn, mode, scene));
        self.settle(owner, scene);
        outcome.unwrap_or(Outcome::Gone)
    }

    /// Turns a hold that there is.
    fn turn(&mut self, owner: OwnerId, turn: u32, mode: Mode, scene: &mut Scene<'_>) -> Outcome {
        let now = scene.now;
        let alone = self.holders.len() == 1 || mutant!(UpgradeBesideReaders);
        let Some(holder) = self.holders.iter_mut().find(|holder| holder.owner == owner) else {
            return Outcome::Gone;
        };
        if turn < holder.turn && !mutant!(LateChangeBelieved) {
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
                self.become_writer(owner, now);
            }
            (from, to) if from == to => holder.upgrading = None,
            (Mode::Write, Mode::Upgradeable | Mode::Read) | (Mode::Upgradeable, Mode::Read) => {
                holder.mode = mode;
                holder.upgrading = None;
            }
            _ => return Outcome::Held { left: Some(self.soonest(now)) },
        }
        let holder = self.holders.iter().find(|holder| holder.owner == owner);
        holder.map_or(Outcome::Gone, |holder| Outcome::Granted {
            token: Token::new(holder.token),
            left: left(holder.ends, now),
        })
    }

    /// The last of the others is gone: whoever waits to become the writer is, and may ask.
    pub(super) fn finish_upgrade(&mut self, scene: &mut Scene<'_>) {
        let [holder] = &mut self.holders[..] else { return };
        let Some(channel) = holder.upgrading.take() else { return };
        let owner = holder.owner;
        self.become_writer(owner, scene.now);
        scene.notices.push((channel, Notice::Open { owner }));
    }

    fn become_writer(&mut self, owner: OwnerId, now: u64) -> Token {
        let Some(at) = self.holders.iter().position(|holder| holder.owner == owner) else {
            return Token::default();
        };
        let ttl = self.holders[at].ends.saturating_sub(now);
        let token = if mutant!(UpgradeKeepsToken) {
            self.holders[at].token
        } else {
            self.draw(1, ttl, now)
        };
        let holder = &mut self.holders[at];
        (holder.mode, holder.upgrading, holder.token) = (Mode::Write, None, token);
        Token::new(token)
    }
}
