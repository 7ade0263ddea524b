//! The state that the steps of one quorum share: its nodes, its holds, and what the nodes have yet to confirm.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::future::select;

use super::no_permits;
use super::node::Node;
use super::node_set::NodeSet;
use super::proposal::Proposal;
use super::stragglers::{Leftover, Stragglers};
use super::waiters::Waiters;
use crate::engine::deadline;
use crate::error::{Code, Error};
use crate::port::backoff::Backoff;
use crate::port::limits::TOMBSTONE_LIFE;
use crate::port::{
    Action, Answer, Applied, Failure, Instant, LeaseHandle, Mode, Outcome, OwnerId, RuntimeHandle,
    Step, Take, Vote,
};
use crate::runtime::sync::Mutex;

/// So long a node is always waited for, where `timeout` and lease allow it: servers stumble.
const PATIENCE: Duration = Duration::from_millis(250);

/// The nodes, and what this client knows of them.
pub(super) struct Voters {
    pub(super) nodes: Vec<Arc<Node>>,
    pub(super) runtime: RuntimeHandle,
    pub(super) max_ttl: Duration,
    timeout: Duration,
    /// How long a decision takes, in nanoseconds, smoothed.
    round_trip: AtomicU64,
    /// The slowest of late, in nanoseconds; 0 before the first.
    slowest: AtomicU64,
    pub(super) proposal: Mutex<Proposal>,
    pub(super) holds: Mutex<BTreeMap<OwnerId, QuorumHold>>,
    pub(super) waiting: Mutex<Waiters>,
}

/// A hold of this client.
pub(super) struct QuorumHold {
    /// The Take that was asked for, with the newest token drawn as the floor.
    pub(super) take: Take,
    /// Until when the majority that granted or renewed it last certainly keeps it.
    pub(super) until: Instant,
    /// Nodes whose vote was still out.
    pub(super) stragglers: Stragglers,
    /// Nodes of which it is not known whether they granted, or may yet.
    pub(super) doubtful: NodeSet,
    /// Nodes whom the vote certainly did not reach: there is nothing to give back.
    pub(super) unasked: NodeSet,
    /// It was given back; kept here for the late nodes only.
    pub(super) freed: bool,
}

impl Voters {
    pub(super) fn new(
        nodes: Vec<LeaseHandle>,
        runtime: RuntimeHandle,
        max_ttl: Duration,
        timeout: Duration,
    ) -> Self {
        Self {
            nodes: nodes.into_iter().map(Node::new).map(Arc::new).collect(),
            runtime,
            max_ttl,
            timeout,
            round_trip: AtomicU64::new(1_000_000),
            slowest: AtomicU64::new(0),
            proposal: Mutex::default(),
            holds: Mutex::default(),
            waiting: Mutex::default(),
        }
    }

    pub(super) fn majority(&self) -> usize {
        self.nodes.len() / 2 + 1
    }

    /// How long the slower nodes are waited for, by somebody who asks for a lease of `ttl`. A way that is long grants no
    /// lock to who is too impatient for it, so what ran out of patience counts as slow, too.
    pub(super) fn patience(&self, ttl: Duration) -> Duration {
        let slowest = self.slowest.load(Ordering::Relaxed);
        let grown = if slowest == 0 { self.timeout } else { Duration::from_nanos(slowest) * 4 };
        grown.max(PATIENCE).min(self.timeout).min(ttl / 4)
    }

    /// How long a decision takes.
    pub(super) fn round_trip(&self) -> Duration {
        Duration::from_nanos(self.round_trip.load(Ordering::Relaxed))
    }

    /// A decision took so long.
    pub(super) fn took(&self, time: Duration) {
        let old = self.round_trip.load(Ordering::Relaxed);
        let time = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.round_trip.store(old - old / 8 + time / 8, Ordering::Relaxed);
        let slowest = self.slowest.load(Ordering::Relaxed);
        self.slowest.store((slowest - slowest / 8).max(time).max(1), Ordering::Relaxed);
    }

    /// A time from zero to `longest`, by the dice.
    pub(super) fn jitter(&self, longest: Duration) -> Duration {
        let mut dice = [0; 2];
        self.runtime.random(&mut dice);
        longest * u32::from(u16::from_le_bytes(dice)) / 0x1_0000
    }

    /// Why a step cannot be carried out on a quorum, if it cannot.
    pub(super) fn refuses(&self, step: &Step) -> Option<Failure> {
        let ttl = match &step.action {
            Action::Take(take) if take.mode == Mode::Permit => {
                return Some(Failure::refused(no_permits()));
            }
            Action::Take(Take { ttl, .. }) | Action::Renew { ttl } | Action::Refresh { ttl } => {
                *ttl
            }
            _ => return None,
        };
        (ttl > self.max_ttl).then(|| {
            let most = self.max_ttl.as_secs_f64();
            let message = format!(
                "on a quorum a lease is at most `max_ttl` long, {most} s; ask for less, or set `max_ttl` for all clients"
            );
            Failure::refused(Error::invalid("ttl", message))
        })
    }

    /// Takes in a node's answers to steps of ours: what it did not confirm is cleaned up there.
    pub(super) fn noted(self: &Arc<Self>, number: usize, batch: &[Step], answers: &[Answer]) {
        for (step, answer) in batch.iter().zip(answers) {
            match step.action {
                Action::Free { .. } => self.ended(number, step, answer),
                Action::Leave { .. } | Action::Break if answer.is_err() => {
                    self.clean_up(number, step, Leftover::Unknown);
                }
                _ => {}
            }
        }
    }

    /// The node has yet to confirm that it knows nothing of this attempt.
    pub(super) fn clean_up(self: &Arc<Self>, number: usize, step: &Step, leftover: Leftover) {
        let until = self.runtime.now() + self.max_ttl.max(TOMBSTONE_LIFE);
        if self.nodes[number].cleanups.lock().add(step, until, leftover) {
            self.repeat_cleanups(number);
        }
    }

    /// Cleans up on a node, until it confirms.
    pub(super) fn repeat_cleanups(self: &Arc<Self>, number: usize) {
        let voters = Arc::clone(self);
        self.runtime.spawn(Box::pin(async move {
            let node = &voters.nodes[number];
            let mut backoff = Backoff::new();
            loop {
                // Before asking, so that none is missed.
                let news = node.news.listen();
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
                            return node.cleanups.lock().clear();
                        }
                        Err(_) => {}
                    }
                }
                if answers.iter().all(Result::is_ok) {
                    continue;
                }
                let rest = voters.runtime.sleep_until(voters.runtime.now() + backoff.next());
                select(news, rest).await;
            }
        }));
    }

    /// A node does not know a hold of ours: it is taken there once more, so that restarts of one node after the other do
    /// not end it. While the majority that knew it last still keeps it, nobody else can have held it in between.
    pub(super) fn heal(self: &Arc<Self>, number: usize, renew: &Step) {
        let mut holds = self.holds.lock();
        let Some(held) = holds.get_mut(&renew.owner) else { return };
        if held.freed || self.runtime.now() >= held.until {
            return;
        }
        // A vote from before may arrive after this one, whatever becomes of it.
        let before = held.doubtful.has(number) || held.stragglers.awaits(number);
        held.doubtful.add(number);
        held.unasked.remove(number);
        let vote = Vote { take: held.take.clone(), aged: self.max_ttl, again: false };
        drop(holds);
        let step = Step { action: Action::Vote(vote), ..renew.clone() };
        let voters = Arc::clone(self);
        self.runtime.spawn(Box::pin(async move {
            let answer = voters.nodes[number].store.step(vec![step.clone()]).await.pop();
            let granted = matches!(answer, Some(Ok(Outcome::Granted { .. })));
            let unknown = !matches!(answer, Some(Ok(_)));
            let mut holds = voters.holds.lock();
            // One that was given back may still be here, for those who are late.
            match holds.get_mut(&step.owner).filter(|held| !held.freed) {
                Some(held) if unknown => held.doubtful.add(number),
                Some(_) if before => {}
                Some(held) => held.doubtful.remove(number),
                // Given back meanwhile: what was taken is not wanted any more.
                None if granted || unknown => {
                    let leftover = if granted { Leftover::Granted } else { Leftover::Unknown };
                    voters.clean_up(number, &step, leftover);
                }
                None => {}
            }
        }));
    }

    /// The vote of a node came back after the matter was decided.
    pub(super) fn late_vote(self: &Arc<Self>, number: usize, step: &Step, answer: &Answer) {
        let mut holds = self.holds.lock();
        let leftover = match holds.get_mut(&step.owner) {
            None => Stragglers::default().voted(number, answer),
            Some(held) => {
                let leftover = held.stragglers.voted(number, answer);
                match answer {
                    Err(failure) if failure.applied == Applied::Unknown => {
                        held.doubtful.add(number);
                    }
                    Err(_) => held.unasked.add(number),
                    Ok(_) => {}
                }
                if held.freed { leftover } else { Leftover::Nothing }
            }
        };
        Self::forget(&mut holds, step.owner);
        drop(holds);
        self.clean_up_late(number, step, leftover);
    }

    /// A node answers that it was told of a hold's end, or does not. Where the vote was known there is no more to it.
    fn ended(self: &Arc<Self>, number: usize, step: &Step, answer: &Answer) {
        let mut holds = self.holds.lock();
        let late =
            holds.get_mut(&step.owner).and_then(|held| held.stragglers.ended(number, answer));
        Self::forget(&mut holds, step.owner);
        drop(holds);
        match late {
            Some(leftover) => self.clean_up_late(number, step, leftover),
            None if answer.is_err() => self.clean_up(number, step, Leftover::Granted),
            None => {}
        }
    }

    fn clean_up_late(self: &Arc<Self>, number: usize, step: &Step, leftover: Leftover) {
        if leftover != Leftover::Nothing {
            self.clean_up(number, step, leftover);
        }
    }

    /// Of what was given back nothing is kept that no answer is out for.
    fn forget(holds: &mut BTreeMap<OwnerId, QuorumHold>, owner: OwnerId) {
        if holds.get(&owner).is_some_and(|held| held.freed && held.stragglers.is_over()) {
            holds.remove(&owner);
        }
    }

    /// A majority knows nothing of a hold, and whoever asked hears of it now: what a minority may still keep is for nobody.
    pub(super) fn gone(self: &Arc<Self>, step: &Step) {
        if matches!(step.action, Action::Renew { .. }) {
            self.give_up(step.owner, false);
            (0..self.nodes.len()).for_each(|node| self.clean_up(node, step, Leftover::Unknown));
        }
    }

    /// A hold is given back; every node is `told`, or what is late decides for itself. Which nodes may have granted it, for
    /// all we know, and which cannot have.
    pub(super) fn give_up(&self, owner: OwnerId, told: bool) -> (NodeSet, NodeSet) {
        let mut holds = self.holds.lock();
        let Some(held) = holds.get_mut(&owner) else { return Default::default() };
        let (doubtful, unasked) = (held.doubtful, held.unasked);
        held.freed = true;
        if told {
            held.stragglers.tell(doubtful);
        }
        Self::forget(&mut holds, owner);
        (doubtful, unasked)
    }

    /// A majority keeps `left` of a lease it was asked for at `sent`.
    pub(super) fn kept(&self, owner: OwnerId, sent: Instant, left: Duration) {
        if let Some(held) = self.holds.lock().get_mut(&owner) {
            held.until = held.until.max(deadline(sent, left));
        }
    }

    /// A hold has been decided: it is ours.
    pub(super) fn holds(&self, owner: OwnerId, held: QuorumHold) {
        self.holds.lock().insert(owner, held);
    }
}
