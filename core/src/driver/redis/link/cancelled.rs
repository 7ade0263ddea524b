//! Attempts whose Take was sent over one connection, and whose answer nobody waits for any more.

use std::collections::BTreeSet;

use crate::port::{Action, OwnerId, Step};
use crate::runtime::sync::Mutex;

/// A step that takes one of these attempts back over the same connection arrives after its Take, so it needs no tombstone.
#[derive(Default)]
pub(in super::super) struct Cancelled(Mutex<BTreeSet<OwnerId>>);

/// Somebody waits for the answers to a batch, until this is dropped.
pub(in super::super) struct Awaited<'a> {
    cancelled: &'a Cancelled,
    batch: &'a [Step],
    answered: bool,
}

impl Cancelled {
    /// A batch is about to be sent over this connection, and never again: what is dropped before it was sent will not be.
    pub(in super::super) fn awaits<'a>(&'a self, batch: &'a [Step]) -> Awaited<'a> {
        Awaited { cancelled: self, batch, answered: false }
    }

    /// The batch as it is to be sent instead, if it takes such attempts back.
    pub(in super::super) fn behind(&self, batch: &[Step]) -> Option<Vec<Step>> {
        let buries = |step: &Step| matches!(step.action, Action::Leave { tombstone: Some(_) });
        if !batch.iter().any(buries) {
            return None;
        }
        let mut cancelled = self.0.lock();
        let behind = |step: &Step| {
            let mut step = step.clone();
            if buries(&step) && cancelled.remove(&step.owner) {
                step.action = Action::Leave { tombstone: None };
            }
            step
        };
        Some(batch.iter().map(behind).collect())
    }
}

impl Awaited<'_> {
    /// It is known what became of each step.
    pub(in super::super) fn answered(mut self) {
        self.answered = true;
    }
}

impl Drop for Awaited<'_> {
    fn drop(&mut self) {
        let takes = |step: &&Step| matches!(step.action, Action::Take(_));
        if !self.answered && self.batch.iter().any(|step| takes(&step)) {
            let owners = self.batch.iter().filter(takes).map(|step| step.owner);
            self.cancelled.0.lock().extend(owners);
        }
    }
}
