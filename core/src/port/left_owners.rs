//! Owners that were taken back before anything was asked for in their name.

use std::collections::VecDeque;

use super::OwnerId;

/// How many are remembered.
const REMEMBERED: usize = 1024;

/// The newest owners of which a Leave came before their Take. That Take is not carried out: nobody would take it back any more. A release that
/// hands its hold over to a waiter that leaves at the same moment may bring them in this order.
#[derive(Debug, Default)]
pub(crate) struct LeftOwners(VecDeque<OwnerId>);

impl LeftOwners {
    /// This owner is taken back, while nothing is known of it. A Leave that is repeated takes the place of no other owner.
    pub(crate) fn add(&mut self, owner: OwnerId) {
        if !self.contains(owner) {
            self.0.truncate(REMEMBERED - 1);
            self.0.push_front(owner);
        }
    }

    /// Whether this owner was taken back.
    pub(crate) fn contains(&self, owner: OwnerId) -> bool {
        self.0.contains(&owner)
    }
}
