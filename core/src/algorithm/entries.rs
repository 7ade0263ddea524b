//! Every attempt, ticket and hold of a client, side by side: who knows an entry's slot finds it without a search.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::ops::{Index, IndexMut};
use std::sync::Arc;

use super::due_queue::Date;
use super::hold::Hold;
use super::pending_attempt::PendingAttempt;
use crate::port::OwnerId;

/// Room for so many entries is kept when there are none.
const KEPT: usize = 1024;

/// Where an entry lies, for as long as it is there.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Slot(NonZeroU32);

impl Slot {
    fn at(index: usize) -> Self {
        let next = u32::try_from(index + 1).ok().and_then(NonZeroU32::new);
        Self(next.expect("that many entries do not fit into memory"))
    }

    fn index(self) -> usize {
        self.0.get() as usize - 1
    }
}

/// A hundred thousand of these are looked through three times in a lease: what a hold does not need stands in the pending attempt.
pub(super) struct Tracked {
    pub(super) date: Date,
    pub(super) stage: Stage,
}

pub(super) enum Stage {
    Pending(Box<PendingAttempt>),
    Held(Arc<Hold>),
    /// A free slot, and the next free one.
    Free(Option<Slot>),
}

impl Stage {
    fn owner(&self) -> Option<OwnerId> {
        match self {
            Self::Pending(pending) => Some(pending.owner),
            Self::Held(hold) => Some(hold.owner),
            Self::Free(_) => None,
        }
    }
}

/// See the module.
#[derive(Default)]
pub(super) struct Entries {
    all: Vec<Tracked>,
    /// One of those where nobody lies.
    free: Option<Slot>,
    slots: BTreeMap<OwnerId, Slot>,
}

impl Entries {
    /// An owner there is no entry of yet.
    pub(super) fn insert(&mut self, owner: OwnerId, stage: Stage) {
        let entry = Tracked { date: Date::NONE, stage };
        let slot = self.free.unwrap_or_else(|| Slot::at(self.all.len()));
        match self.all.get_mut(slot.index()) {
            None => self.all.push(entry),
            Some(before) => {
                if let Stage::Free(next) = std::mem::replace(before, entry).stage {
                    self.free = next;
                }
            }
        }
        self.slots.insert(owner, slot);
    }

    /// Nobody lies there any more.
    pub(super) fn remove(&mut self, owner: OwnerId) -> Option<Stage> {
        let slot = self.slots.remove(&owner)?;
        let free = Stage::Free(self.free.replace(slot));
        let stage = std::mem::replace(&mut self[slot].stage, free);
        if self.slots.is_empty() && self.all.len() > KEPT {
            *self = Self::default();
        }
        Some(stage)
    }

    pub(super) fn find(&self, owner: OwnerId) -> Option<Slot> {
        self.slots.get(&owner).copied()
    }

    pub(super) fn get_mut(&mut self, owner: OwnerId) -> Option<&mut Tracked> {
        self.find(owner).map(|slot| &mut self[slot])
    }

    /// The entry in this slot, if it is still this owner's.
    pub(super) fn at(&mut self, slot: Slot, owner: OwnerId) -> Option<&mut Tracked> {
        self.all.get_mut(slot.index()).filter(|entry| entry.stage.owner() == Some(owner))
    }

    pub(super) fn owners(&self) -> impl Iterator<Item = (OwnerId, &Stage)> {
        self.slots.iter().map(|(owner, slot)| (*owner, &self[*slot].stage))
    }

    pub(super) fn stages_mut(&mut self) -> impl Iterator<Item = &mut Stage> {
        self.all.iter_mut().map(|entry| &mut entry.stage)
    }

    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }
}

impl Index<Slot> for Entries {
    type Output = Tracked;

    fn index(&self, slot: Slot) -> &Tracked {
        &self.all[slot.index()]
    }
}

impl IndexMut<Slot> for Entries {
    fn index_mut(&mut self, slot: Slot) -> &mut Tracked {
        &mut self.all[slot.index()]
    }
}
