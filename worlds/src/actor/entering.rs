//! A scope's lock, entered once more by one who holds it.

use std::time::Duration;

use fencelock::{Claim, Released};

use super::{Asking, Ended, Place};
use crate::cancel::Cancelled;
use crate::checker::{Rule, lock_key};
use crate::plan::{Act, Cancel, How};

impl Place {
    /// Enters and leaves the lock that `outer` holds; what it holds is what `outer` does, and stays.
    pub(super) async fn enter(&self, outer: &Claim, act: &Act, ttl: Duration, cancel: Cancel) {
        if act.scope.is_none() {
            return;
        }
        let act = Act { how: How::Acquire, section: Vec::new(), ..act.clone() };
        let asking = Asking::begin(self, &act);
        let lock = self.scope.lock(lock_key(act.lock).as_str()).ttl(ttl);
        let entered = Cancelled::new(&self.node, cancel, lock.acquire()).await;
        asking.end(&Ended::of(entered.as_ref()));
        let Some(Ok(guard)) = entered else { return };
        let note = self.checker.holds(self.number, act.lock, &act, &guard);
        if guard.token() != outer.token() {
            let detail = format!("entered with {} beside {}", guard.token(), outer.token());
            self.checker.violated(Rule::Overlap, detail);
        }
        drop(note);
        let released = guard.release().await;
        if self.checker.calm() && !(matches!(released, Released::Released) && outer.is_held()) {
            let detail = format!("left again: {released:?}, held: {}", outer.is_held());
            self.checker.violated(Rule::FalselyLost, detail);
        }
    }
}
