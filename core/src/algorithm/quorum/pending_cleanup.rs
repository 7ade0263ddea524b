//! The cleanups that one node of a quorum has yet to confirm: it is asked again and again to free attempts and holds.

use std::collections::BTreeMap;

use super::stragglers::Leftover;
use crate::port::{Action, Instant, Kind, LockKey, OwnerId, Step};

/// How many are sent at once: what a store answers in some 10 ms.
const AT_ONCE: usize = 1000;

/// Attempts and holds that the node has yet to confirm it knows nothing of.
#[derive(Default)]
pub(super) struct PendingCleanups {
    pending: BTreeMap<(LockKey, OwnerId), PendingCleanup>,
    /// Whether a task is at it.
    pub(super) in_progress: bool,
}

#[derive(Clone, Copy)]
struct PendingCleanup {
    kind: Kind,
    /// When it has settled itself.
    until: Instant,
    leftover: Leftover,
    /// Whether it was sent since it was last added.
    sent: bool,
}

impl PendingCleanups {
    /// Adds an attempt to clean up; true if no task is at it yet.
    pub(super) fn add(&mut self, step: &Step, until: Instant, leftover: Leftover) -> bool {
        let cleanup = PendingCleanup { kind: step.kind, until, leftover, sent: false };
        let known = self.pending.entry((step.lock.clone(), step.owner)).or_insert(cleanup);
        let leftover =
            if known.leftover == Leftover::Unknown { Leftover::Unknown } else { leftover };
        *known = PendingCleanup { leftover, ..cleanup };
        !std::mem::replace(&mut self.in_progress, true)
    }

    /// A step of a batch was confirmed. One that was added again since stays: the node may have granted it behind the batch.
    pub(super) fn confirmed(&mut self, step: &Step) {
        let cleanup = (step.lock.clone(), step.owner);
        let again = self.pending.get(&cleanup).is_some_and(|cleanup| !cleanup.sent);
        if !again {
            self.pending.remove(&cleanup);
        }
    }

    /// Some of what is pending now, as steps; with nothing pending, no task is at it any more.
    pub(super) fn next_batch(&mut self, now: Instant) -> Vec<Step> {
        self.pending.retain(|_, cleanup| cleanup.until > now);
        self.in_progress = !self.pending.is_empty();
        let step = |(of, cleanup): (&(LockKey, OwnerId), &mut PendingCleanup)| {
            cleanup.sent = true;
            let action = match cleanup.leftover {
                Leftover::Nothing | Leftover::Granted => Action::Free { open: false },
                Leftover::Unknown => Action::Leave { tombstone: Some(cleanup.until.since(now)) },
            };
            Step { lock: of.0.clone(), owner: of.1, kind: cleanup.kind, action }
        };
        self.pending.iter_mut().take(AT_ONCE).map(step).collect()
    }

    pub(super) fn clear(&mut self) {
        self.pending.clear();
        self.in_progress = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_added_again_behind_a_batch_is_not_confirmed_by_it() {
        let (lock, owner) = (LockKey::new("x"), OwnerId::parse(&"1".repeat(32)).unwrap());
        let action = Action::Read;
        let step = Step { lock, owner, kind: Kind::Mutex, action };
        let until = Instant::FAR;
        for (first, again) in [
            (Leftover::Granted, Leftover::Granted),
            (Leftover::Granted, Leftover::Unknown),
            (Leftover::Unknown, Leftover::Granted),
        ] {
            let mut cleanups = PendingCleanups::default();
            assert!(cleanups.add(&step, until, first));
            let batch = cleanups.next_batch(Instant::default());
            assert!(!cleanups.add(&step, until, again));
            cleanups.confirmed(&batch[0]);
            let batch = cleanups.next_batch(Instant::default());
            assert_eq!(batch.len(), 1, "{again:?} after {first:?}");
            cleanups.confirmed(&batch[0]);
            assert_eq!(cleanups.next_batch(Instant::default()), []);
        }
    }
}
