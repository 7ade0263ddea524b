//! Looking at a lock without changing anything.

use super::core::Core;
use super::target::Target;
use crate::error::{Error, Result};
use crate::port::{Action, Outcome, OwnerId, State};

impl Core {
    /// What lies on the store, and who waits in this client.
    pub(crate) async fn inspect(&self, lock: &Target) -> Result<State> {
        let step = lock.step(OwnerId::draw(&*self.runtime), Action::Read);
        match self.store.step(vec![step]).await.pop() {
            Some(Ok(Outcome::State(mut state))) => {
                let now = self.runtime.now();
                state.waiters.extend(self.cohorts.lock().in_line(lock, now));
                Ok(state)
            }
            Some(Err(failure)) => Err(failure.error),
            _ => Err(Error::internal("the store answered a Read with something else")),
        }
    }
}
