//! What is known of joins here, so that whoever takes one back knows whether it can still come, and the key that refuses it goes.

use std::collections::{BTreeMap, VecDeque};

use crate::port::{OwnerId, SessionId};
use crate::runtime::sync::Mutex;

/// How many of those that were taken back before they were made are remembered.
const REMEMBERED: usize = 1024;

/// See the module.
#[derive(Default)]
pub(super) struct Joins(Mutex<State>);

#[derive(Default)]
struct State {
    /// Those without a certain answer: of which session, and whether the key may be there that refuses one which comes late.
    open: BTreeMap<OwnerId, (SessionId, bool)>,
    /// The newest that were taken back with nothing of them on the way.
    left: VecDeque<OwnerId>,
}

impl Joins {
    /// A join is about to be sent. Whether it may be: it was not taken back before.
    pub(super) fn begin(&self, of: SessionId, owner: OwnerId) -> bool {
        let mut state = self.0.lock();
        let may = !state.left.contains(&owner);
        if may {
            state.open.insert(owner, (of, false));
        }
        may
    }

    /// A join has a certain answer: it does not come late. Whether the key that refuses it may be there.
    pub(super) fn answered(&self, owner: OwnerId) -> bool {
        self.0.lock().open.remove(&owner).is_some_and(|(_, refused)| refused)
    }

    /// Whether a join may still come.
    pub(super) fn is_open(&self, owner: OwnerId) -> bool {
        self.0.lock().open.contains_key(&owner)
    }

    /// A join is about to be refused. Whether that is needed: it may still come.
    pub(super) fn refuse(&self, owner: OwnerId) -> bool {
        let mut state = self.0.lock();
        state.open.get_mut(&owner).map(|(_, refused)| *refused = true).is_some()
    }

    /// Nothing is there of an owner id, and nothing on the way.
    pub(super) fn leave(&self, owner: OwnerId) {
        let left = &mut self.0.lock().left;
        left.truncate(REMEMBERED - 1);
        left.push_front(owner);
    }

    /// A session is over, and all that was sent for it.
    pub(super) fn forget_all(&self, of: SessionId) {
        let mut state = self.0.lock();
        state.open.retain(|_, (session, _)| *session != of);
        state.left.clear();
    }
}
