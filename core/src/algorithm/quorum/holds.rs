//! The holds of this client on a quorum, and what each node has yet to give back of them.

use std::sync::Arc;
use std::time::Duration;

use super::node::Cleanups;
use super::voters::Voters;
use crate::engine::deadline;
use crate::error::Code;
use crate::port::backoff::Backoff;
use crate::port::limits::TOMBSTONE_LIFE;
use crate::port::{Action, Answer, Applied, Instant, Outcome, OwnerId, Step, Take};
use crate::runtime::sync::Mutex;

/// The part of a hold that a node may keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kept {
    /// It refused, or was certainly not reached.
    Nothing,
    Granted,
    /// It did not answer: it may have granted, or may yet.
    Unknown,
    /// Its answer is awaited.
    Asked,
    /// The same, and it did not confirm the end behind it: the answer says whether there is anything to clean up.
    Owed,
}

impl Kept {
    /// The state of a node that answered a Take so.
    pub(super) fn after(answer: &Answer) -> Self {
        match answer {
            Ok(Outcome::Granted { .. }) => Self::Granted,
            Err(failure) if failure.applied == Applied::Unknown => Self::Unknown,
            Ok(_) | Err(_) => Self::Nothing,
        }
    }
}

/// The parts of a hold that the nodes may keep, by node. Requests under way know it longer than the hold lasts.
#[derive(Clone)]
pub(super) struct KeptByNode(Arc<Mutex<Vec<Kept>>>);

impl KeptByNode {
    pub(super) fn new(kept: Vec<Kept>) -> Self {
        Self(Arc::new(Mutex::new(kept)))
    }

    pub(super) fn of(&self, node: usize) -> Kept {
        self.0.lock()[node]
    }

    /// Answers what it was before.
    pub(super) fn change(&self, node: usize, change: impl FnOnce(Kept) -> Kept) -> Kept {
        let kept = &mut self.0.lock()[node];
        let after = change(*kept);
        std::mem::replace(kept, after)
    }
}

/// A hold of this client.
pub(super) struct QuorumHold {
    /// The Take of each node, with the newest token drawn as the floor.
    pub(super) take: Take,
    /// Until when the majority that granted or renewed it last certainly keeps it.
    pub(super) until: Instant,
    pub(super) kept: KeptByNode,
}

impl Voters {
    /// So long an owner id is refused, or asked to be given back: as long as anything of it can arrive or last.
    fn cleanup_life(&self) -> Duration {
        self.max_ttl.max(TOMBSTONE_LIFE)
    }

    /// An end of a hold, as it is sent to a node that keeps this part of it. A Take that may be under way is refused then.
    pub(super) fn end_on(&self, step: &Step, kept: Kept) -> Option<Step> {
        match kept {
            Kept::Nothing => None,
            Kept::Granted => Some(step.clone()),
            Kept::Unknown | Kept::Asked | Kept::Owed => {
                let tombstone = Some(self.cleanup_life());
                Some(Step { action: Action::Leave { tombstone }, ..step.clone() })
            }
        }
    }

    /// A hold comes to its end here. What the nodes keep of it; `None` if it is not known.
    pub(super) fn ended(&self, owner: OwnerId) -> Option<KeptByNode> {
        self.holds.lock().remove(&owner).map(|hold| hold.kept)
    }

    /// A majority keeps `left` of a lease it was asked for at `sent`.
    pub(super) fn renewed(&self, owner: OwnerId, sent: Instant, left: Duration) {
        if let Some(hold) = self.holds.lock().get_mut(&owner) {
            hold.until = hold.until.max(deadline(sent, left));
        }
    }

    /// A node does not know a hold of ours: it is taken there once more, so that restarts of one node after the other do
    /// not end it. While the majority that knew it last still keeps it, nobody else can have held it in between.
    pub(super) fn heal(self: &Arc<Self>, number: usize, renew: &Step) {
        let holds = self.holds.lock();
        let Some(hold) = holds.get(&renew.owner) else { return };
        // One Take at a time: a tombstone stops only what comes after it.
        if self.runtime.now() >= hold.until || hold.kept.of(number) == Kept::Asked {
            return;
        }
        let kept_by = hold.kept.clone();
        let before = kept_by.change(number, |_| Kept::Asked);
        let step = Step { action: Action::Take(hold.take.clone()), ..renew.clone() };
        drop(holds);
        let voters = Arc::clone(self);
        self.runtime.spawn(Box::pin(async move {
            let answer = voters.nodes[number].store.step(vec![step.clone()]).await.pop();
            let kept = answer.as_ref().map_or(Kept::Unknown, Kept::after);
            // A former one may still arrive.
            let kept = if before == Kept::Unknown { before } else { kept };
            voters.voted(&kept_by, number, &step, kept);
            // Given back meanwhile: the end may have found a former vote, and come before this one.
            let ended = !voters.holds.lock().contains_key(&step.owner);
            if ended && kept != Kept::Nothing {
                voters.clean_up(number, &step);
            }
        }));
    }

    /// A Take of a hold was answered after the hold was decided.
    pub(super) fn voted(
        self: &Arc<Self>,
        hold: &KeptByNode,
        number: usize,
        step: &Step,
        kept: Kept,
    ) {
        let before = hold.change(number, |_| kept);
        if before == Kept::Owed && kept != Kept::Nothing {
            self.clean_up(number, step);
        }
    }

    /// A node did not confirm that it was told of an end.
    pub(super) fn unconfirmed(
        self: &Arc<Self>,
        hold: Option<&KeptByNode>,
        number: usize,
        step: &Step,
    ) {
        let owed = |kept| if kept == Kept::Asked { Kept::Owed } else { kept };
        match hold.map_or(Kept::Unknown, |hold| hold.change(number, owed)) {
            Kept::Nothing | Kept::Asked => {}
            Kept::Granted | Kept::Unknown | Kept::Owed => self.clean_up(number, step),
        }
    }

    /// A majority does not have the hold, and the caller is answered so: a minority that may still keep it has to free it.
    pub(super) fn gone(self: &Arc<Self>, step: &Step) {
        self.ended(step.owner);
        (0..self.nodes.len()).for_each(|node| self.clean_up(node, step));
    }

    /// The node has yet to confirm that it knows nothing of this attempt: it is told until it does.
    pub(super) fn clean_up(self: &Arc<Self>, number: usize, step: &Step) {
        let until = self.runtime.now() + self.cleanup_life();
        if !self.nodes[number].cleanups.lock().add(step, until) {
            return;
        }
        let voters = Arc::clone(self);
        self.runtime.spawn(Box::pin(async move {
            let node = &voters.nodes[number];
            let mut backoff = Backoff::new();
            loop {
                let batch = node.cleanups.lock().next_batch(voters.runtime.now());
                if batch.is_empty() {
                    return;
                }
                let answers = node.store.step(batch.clone()).await;
                for (step, answer) in batch.iter().zip(&answers) {
                    match answer {
                        Ok(_) => {
                            node.spoke();
                            node.cleanups.lock().confirmed(step);
                        }
                        Err(failure) if failure.error.code() == Code::Closed => {
                            *node.cleanups.lock() = Cleanups::default();
                            return;
                        }
                        Err(_) => {}
                    }
                }
                if !answers.iter().all(Result::is_ok) {
                    node.back.rest(backoff.next()).await;
                }
            }
        }));
    }
}
