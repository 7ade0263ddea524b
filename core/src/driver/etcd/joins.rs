//! The joins that this client sent or took back: whether one can still arrive, and whether its refusing key has to be deleted.

use std::collections::BTreeMap;

use crate::port::left_owners::LeftOwners;
use crate::port::{OwnerId, SessionId};
use crate::runtime::sync::Mutex;

/// See the module.
#[derive(Default)]
pub(super) struct Joins(Mutex<State>);

#[derive(Default)]
struct State {
    /// Those without a certain answer: of which session, and whether the key may be there that refuses one which comes late.
    open: BTreeMap<OwnerId, (SessionId, bool)>,
    /// The newest that were taken back with nothing of them on the way.
    left: LeftOwners,
}

impl Joins {
    /// A join is about to be sent. Whether it may be: it was not taken back before.
    pub(super) fn begin(&self, of: SessionId, owner: OwnerId) -> bool {
        let mut state = self.0.lock();
        let may = !state.left.contains(owner);
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

    /// A join is taken back. True if it was sent and may still arrive: a key on the store has to refuse it. Otherwise it is never sent.
    pub(super) fn refuse(&self, owner: OwnerId) -> bool {
        let State { open, left } = &mut *self.0.lock();
        if let Some((_, refused)) = open.get_mut(&owner) {
            *refused = true;
            return true;
        }
        left.add(owner);
        false
    }

    /// A session is over, and all that was sent for it.
    pub(super) fn forget_all(&self, of: SessionId) {
        self.0.lock().open.retain(|_, (session, _)| *session != of);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_join_is_not_sent_once_it_was_taken_back() {
        let (joins, owner) = (Joins::default(), OwnerId::parse(&"7".repeat(32)).unwrap());
        assert!(!joins.refuse(owner), "nothing of it is on the way");
        assert!(!joins.begin(SessionId::new(1), owner), "it was taken back before");
    }

    #[test]
    fn a_join_that_may_still_come_is_refused_by_a_key() {
        let (joins, owner) = (Joins::default(), OwnerId::parse(&"7".repeat(32)).unwrap());
        assert!(joins.begin(SessionId::new(1), owner));
        assert!(joins.refuse(owner));
        assert!(joins.answered(owner), "the key may be there");
    }
}
