//! What the draining thread waits for.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Whoever is hurried waits no longer than this.
const HURRIED: Duration = Duration::from_millis(10);

/// Rung by whoever has news, heard once however often it was rung.
#[derive(Default)]
pub(crate) struct Bell {
    state: Mutex<BellState>,
    heard: Condvar,
}

#[derive(Default)]
struct BellState {
    rung: bool,
    /// Nobody is to wait long in here any more.
    hurried: bool,
}

impl Bell {
    pub(crate) fn ring(&self) {
        self.state().rung = true;
        self.heard.notify_one();
    }

    /// From now on nobody waits long.
    pub(crate) fn hurry(&self) {
        self.state().hurried = true;
        self.heard.notify_one();
    }

    /// Waits until it is rung, or has waited long enough. Whatever is rung for from now on is heard by the next wait.
    pub(crate) fn wait(&self) {
        let state = self.state();
        let mut state = if state.hurried {
            let waited = self.heard.wait_timeout_while(state, HURRIED, |state| !state.rung);
            waited.unwrap_or_else(PoisonError::into_inner).0
        } else {
            let waited = self.heard.wait_while(state, |state| !state.rung && !state.hurried);
            waited.unwrap_or_else(PoisonError::into_inner)
        };
        state.rung = false;
    }

    fn state(&self) -> MutexGuard<'_, BellState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
