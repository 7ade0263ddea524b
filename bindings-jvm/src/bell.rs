//! What the draining thread waits for.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Rung by whoever has news, heard once however often it was rung.
#[derive(Default)]
pub(crate) struct Bell {
    state: Mutex<State>,
    heard: Condvar,
}

#[derive(Default)]
struct State {
    rung: bool,
    /// Nobody is to wait in here any more.
    jammed: bool,
}

impl Bell {
    pub(crate) fn ring(&self) {
        self.state().rung = true;
        self.heard.notify_one();
    }

    /// From now on it rings all the time.
    pub(crate) fn jam(&self) {
        self.state().jammed = true;
        self.heard.notify_one();
    }

    /// Waits until it is rung. Whatever is rung for from now on is heard by the next wait.
    pub(crate) fn wait(&self) {
        let waited = self.heard.wait_while(self.state(), |state| !state.rung && !state.jammed);
        waited.unwrap_or_else(PoisonError::into_inner).rung = false;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
