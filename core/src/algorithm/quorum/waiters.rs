//! Attempts of this client that were not granted, and under which id the nodes tell when a lock is given back.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::fence::Token;
use crate::port::{Action, LockKey, Outcome, OwnerId, RuntimeHandle, Step};

#[derive(Default)]
pub(super) struct Waiters(BTreeMap<LockKey, Watch>);

struct Watch {
    /// Has the nodes tell no more; by its owner they know us.
    forget: Step,
    /// The attempts that wait.
    owners: BTreeSet<OwnerId>,
    /// How many votes in a row nobody won.
    splits: u32,
}

impl Waiters {
    /// An attempt has to wait. Answers the id to be told by.
    pub(super) fn wait(&mut self, step: &Step, runtime: &RuntimeHandle) -> OwnerId {
        let watch = self.0.entry(step.lock.clone()).or_insert_with(|| {
            let (owner, action) = (OwnerId::draw(&**runtime), Action::Leave { tombstone: None });
            let forget = Step { owner, action, ..step.clone() };
            Watch { forget, owners: BTreeSet::new(), splits: 0 }
        });
        watch.owners.insert(step.owner);
        watch.forget.owner
    }

    /// A vote for the lock was won by nobody, or it was not split. How many in a row were.
    pub(super) fn splits(&mut self, lock: &LockKey, split: bool) -> u32 {
        let Some(watch) = self.0.get_mut(lock) else { return 0 };
        watch.splits = if split { watch.splits + 1 } else { 0 };
        watch.splits
    }

    /// The attempt was granted. Who else waits here goes on.
    pub(super) fn won(&mut self, step: &Step, exclusive: bool) -> Option<Step> {
        let watch = self.0.get(&step.lock)?;
        if !watch.owners.is_empty() {
            return None;
        }
        // The nodes forget it by themselves where nobody holds beside it.
        self.0.remove(&step.lock).filter(|_| !exclusive).map(|watch| watch.forget)
    }

    /// A Refresh: the attempt is to ask again, with another owner id.
    pub(super) fn asks_again(&mut self, step: &Step) -> Outcome {
        if let Some(watch) = self.0.get_mut(&step.lock) {
            watch.owners.remove(&step.owner);
        }
        Outcome::Gone
    }

    /// An attempt gives up; if it was the last, the nodes need not tell any more.
    pub(super) fn left(&mut self, step: &Step) -> Option<Step> {
        let watch = self.0.get_mut(&step.lock)?;
        watch.owners.remove(&step.owner);
        if !watch.owners.is_empty() {
            return None;
        }
        self.0.remove(&step.lock).map(|watch| watch.forget)
    }

    /// Nobody waits any more. What the nodes are to forget.
    pub(super) fn all_left(&mut self) -> Vec<Step> {
        std::mem::take(&mut self.0).into_values().map(|watch| watch.forget).collect()
    }

    /// A node told that a lock was given back: the attempts that wait for it.
    pub(super) fn told(&self, id: OwnerId) -> Vec<OwnerId> {
        let watch = self.0.values().find(|watch| watch.forget.owner == id);
        watch.map(|watch| watch.owners.iter().copied().collect()).unwrap_or_default()
    }
}

/// The answer to an attempt that has to wait.
pub(super) fn queued(left: Option<Duration>, ahead: u32, foreign: bool) -> Outcome {
    Outcome::Queued { last: Token::default(), left, ahead, foreign }
}
