//! Checks the entries that a store with sessions still has in the end.

use super::World;
use crate::checker::Rule;
use crate::server::Server;

impl World {
    /// Everybody has left, or their sessions are over: no entry is there.
    pub(super) fn look_for_entries(&self) {
        self.stores.first().store(|store: &mut Server| {
            for (lock, record) in store.records() {
                let detail = format!("entries of {lock:?} are left in the end: {record:?}");
                self.checker.violated(Rule::Stuck, detail);
            }
        });
    }
}
