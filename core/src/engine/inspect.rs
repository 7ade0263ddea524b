//! Looking at a lock without changing anything.

use super::Engine;
use super::request::LockId;
use crate::error::{Error, Result};
use crate::port::{Action, LockState, Outcome, OwnerId};

impl Engine {
    /// Whether anybody holds it.
    pub(crate) async fn is_locked(&self, lock: &LockId) -> Result<bool> {
        Ok(!self.look_at(lock).await?.holders.is_empty())
    }

    /// The state of the lock on the store, with the waiters in this client.
    pub(crate) async fn inspect(&self, lock: &LockId) -> Result<LockState> {
        let mut state = self.look_at(lock).await?;
        let now = self.runtime.now();
        state.waiters.extend(self.table.lock().lines.waiters(lock, now));
        Ok(state)
    }

    pub(super) async fn look_at(&self, lock: &LockId) -> Result<LockState> {
        self.check_open()?;
        let step = lock.step(OwnerId::draw(&*self.runtime), Action::Read);
        match self.store.step(vec![step]).await.pop() {
            Some(Ok(Outcome::State(state))) => Ok(state),
            Some(Err(failure)) => Err(failure.error),
            _ => Err(Error::internal("the store answered a Read with something else")),
        }
    }
}
