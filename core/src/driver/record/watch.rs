//! The further tasks of a node of a quorum: it votes, and it notifies those who were not granted when the lock is given back.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::holder::{admits, left};
use super::{Record, Scene, micros};
use crate::port::limits::{TICKET_LIFE, VOTE_LEAD};
use crate::port::{Mode, Notice, Outcome, OwnerId, Take, Vote, WaiterView};

/// Somebody to tell when the lock is given back.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Watcher {
    /// The owner id that a notice to it names.
    pub owner: OwnerId,
    /// How it wants to hold.
    pub mode: Mode,
    /// Where its client listens.
    pub channel: Arc<str>,
    /// When it came.
    pub since: u64,
    /// When it was last heard of.
    pub refreshed: u64,
    /// The text by which it describes itself.
    pub info: Arc<str>,
}

impl Watcher {
    pub(super) fn live(&self, now: u64) -> bool {
        now < self.refreshed + micros(TICKET_LIFE)
    }

    pub(super) fn view(&self, now: u64) -> WaiterView {
        let waiting_for = left(now, self.since);
        WaiterView { mode: self.mode, info: self.info.clone(), waiting_for }
    }
}

impl Record {
    pub(super) fn vote(&mut self, owner: OwnerId, vote: &Vote, scene: &mut Scene<'_>) -> Outcome {
        let now = scene.now;
        let take = &Take { wait: false, ..vote.take.clone() };
        let holds = self.holders.iter().any(|holder| holder.owner == owner);
        if vote.again && !holds {
            return Outcome::Gone;
        }
        let tombstoned = self.tombstones.contains_key(&owner);
        if !holds && !tombstoned && self.gives_way(take.mode, now) {
            return Outcome::Held { left: Some(self.soonest(now)) };
        }
        let outcome = self.take(owner, take, VOTE_LEAD, scene);
        if matches!(outcome, Outcome::Granted { .. }) && take.mode.is_exclusive() {
            self.watchers.retain(|watcher| watcher.channel != *scene.channel);
        }
        outcome
    }

    pub(super) fn watch(
        &mut self,
        owner: OwnerId,
        mode: Mode,
        info: &Arc<str>,
        scene: &Scene<'_>,
    ) -> Outcome {
        let now = scene.now;
        self.watchers.retain(|watcher| watcher.live(now));
        let free = self.tickets.is_empty() && admits(&self.holders, mode, 1);
        if free && !self.gives_way(mode, now) {
            return Outcome::Gone;
        }
        let place = self.watchers.iter().position(|watcher| watcher.owner == owner);
        if let Some(place) = place {
            let watcher = &mut self.watchers[place];
            (watcher.mode, watcher.refreshed) = (mode, now);
        } else {
            let (channel, info) = (scene.channel.clone(), info.clone());
            let (since, refreshed) = (now, now);
            self.watchers.push_back(Watcher { owner, mode, channel, since, refreshed, info });
        }
        self.queued(place.unwrap_or(self.watchers.len() - 1), now)
    }

    /// Beside others a reader does not enter past somebody who wants to be alone. With nobody left, whoever wants that was
    /// told, or is dead and would keep all others out.
    fn gives_way(&self, mode: Mode, now: u64) -> bool {
        if self.holders.is_empty() {
            return false;
        }
        let mut watchers = self.watchers.iter().filter(|watcher| watcher.live(now));
        !mode.is_exclusive() && watchers.any(|watcher| watcher.mode.is_exclusive())
    }

    /// The lock was given back: tells the first who may hold now, and readers behind a reader.
    pub(super) fn call(&mut self, scene: &mut Scene<'_>) {
        let mut readers = false;
        self.watchers.retain(|watcher| watcher.live(scene.now));
        while self.tickets.is_empty()
            && let Some(first) = self.watchers.front()
        {
            let alone = first.mode.is_exclusive();
            if alone && readers || !admits(&self.holders, first.mode, 1) {
                return;
            }
            let Some(Watcher { owner, channel, .. }) = self.watchers.pop_front() else { return };
            if (scene.reachable)(&channel) {
                scene.notices.push((channel, Notice::Open { owner }));
                readers = true;
                if alone {
                    return;
                }
            }
        }
    }
}

impl Vote {
    /// For how long the node may have lost what it knew too short a time ago.
    pub(super) fn recovery(&self, scene: &Scene<'_>) -> Option<Duration> {
        let votes_from = scene.born + micros(self.aged);
        (scene.now < votes_from).then(|| left(votes_from, scene.now))
    }
}
