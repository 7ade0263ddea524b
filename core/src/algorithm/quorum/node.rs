//! One node of a quorum: its store, whether it answers, and what it has yet to confirm.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use crate::engine::RetryDelays;
use crate::port::{Action, Instant, Kind, LeaseHandle, LockKey, OwnerId, Step};
use crate::runtime::sync::Mutex;

/// How many requests a node that does not answer is sent beside each other; the rest waits for its cleanup.
const PROBES: usize = 8;

/// A lease store that votes.
pub(super) struct Node {
    pub(super) store: LeaseHandle,
    /// It let a request wait too long, and has not answered any since: nobody waits for it.
    silent: AtomicBool,
    under_way: AtomicUsize,
    /// Since when requests are under way of which none was answered.
    unheard: Mutex<Option<Instant>>,
    pub(super) cleanups: Mutex<Cleanups>,
    /// The delays between its cleanups.
    pub(super) back: RetryDelays,
}

impl Node {
    pub(super) fn new(store: LeaseHandle, back: RetryDelays) -> Self {
        let (silent, under_way) = (AtomicBool::new(false), AtomicUsize::new(0));
        Self {
            store,
            silent,
            under_way,
            unheard: Mutex::default(),
            cleanups: Mutex::default(),
            back,
        }
    }

    pub(super) fn is_silent(&self) -> bool {
        self.silent.load(Ordering::Relaxed)
    }

    /// A request goes out; false if the node has enough of them to answer first. One that answers none for longer than
    /// `patience` is silent, also where the others decide without it.
    pub(super) fn begin(&self, now: Instant, patience: Duration) -> bool {
        let since = *self.unheard.lock().get_or_insert(now);
        if now.since(since) > patience {
            self.fell_silent();
        }
        if self.is_silent() && self.under_way.load(Ordering::Relaxed) >= PROBES {
            return false;
        }
        self.under_way.fetch_add(1, Ordering::Relaxed);
        true
    }

    /// It has come back, with or without an answer.
    pub(super) fn end(&self, answered: bool, now: Instant) {
        let others = self.under_way.fetch_sub(1, Ordering::Relaxed) > 1;
        if answered {
            self.spoke();
            *self.unheard.lock() = others.then_some(now);
        }
    }

    pub(super) fn spoke(&self) {
        self.silent.store(false, Ordering::Relaxed);
    }

    pub(super) fn fell_silent(&self) {
        self.silent.store(true, Ordering::Relaxed);
    }
}

/// How many cleanups are sent at once: what a store answers in some 10 ms.
const AT_ONCE: usize = 1000;

/// Attempts and holds that a node has yet to confirm it knows nothing of.
#[derive(Default)]
pub(super) struct Cleanups {
    pending: BTreeMap<(LockKey, OwnerId), Cleanup>,
    /// Whether a task is at it.
    in_progress: bool,
}

struct Cleanup {
    kind: Kind,
    /// When it has settled itself.
    until: Instant,
    /// Whether it was sent since it was last added.
    sent: bool,
}

impl Cleanups {
    /// Adds an attempt to clean up; true if no task is at it yet.
    pub(super) fn add(&mut self, step: &Step, until: Instant) -> bool {
        let cleanup = Cleanup { kind: step.kind, until, sent: false };
        self.pending.insert((step.lock.clone(), step.owner), cleanup);
        !std::mem::replace(&mut self.in_progress, true)
    }

    /// Drops a confirmed cleanup, unless it was added again since: the node may have granted it behind the batch.
    pub(super) fn confirmed(&mut self, step: &Step) {
        let cleanup = (step.lock.clone(), step.owner);
        if self.pending.get(&cleanup).is_some_and(|cleanup| cleanup.sent) {
            self.pending.remove(&cleanup);
        }
    }

    /// Some of what is pending now, as steps; with nothing pending, no task is at it any more.
    pub(super) fn next_batch(&mut self, now: Instant) -> Vec<Step> {
        self.pending.retain(|_, cleanup| cleanup.until > now);
        self.in_progress = !self.pending.is_empty();
        let step = |(of, cleanup): (&(LockKey, OwnerId), &mut Cleanup)| {
            cleanup.sent = true;
            let action = Action::Leave { tombstone: Some(cleanup.until.since(now)) };
            Step { lock: of.0.clone(), owner: of.1, kind: cleanup.kind, action }
        };
        self.pending.iter_mut().take(AT_ONCE).map(step).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_added_again_behind_a_batch_is_not_confirmed_by_it() {
        let (lock, owner) = (LockKey::new("x"), OwnerId::parse(&"1".repeat(32)).unwrap());
        let step = Step { lock, owner, kind: Kind::Mutex, action: Action::Read };
        let until = Instant::FAR;
        let mut cleanups = Cleanups::default();
        assert!(cleanups.add(&step, until));
        let batch = cleanups.next_batch(Instant::default());
        assert!(!cleanups.add(&step, until));
        cleanups.confirmed(&batch[0]);
        let batch = cleanups.next_batch(Instant::default());
        assert_eq!(batch.len(), 1);
        cleanups.confirmed(&batch[0]);
        assert_eq!(cleanups.next_batch(Instant::default()), []);
    }
}
