//! The wakeup that the draining thread waits for.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The longest wait once [`Wakeup::hurry`] was called.
const HURRIED: Duration = Duration::from_millis(10);

/// Wakes the thread when there is news: once, however often it is called before that.
#[derive(Default)]
pub(crate) struct Wakeup {
    state: Mutex<WakeupState>,
    condition: Condvar,
}

#[derive(Default)]
struct WakeupState {
    woken: bool,
    /// Nobody is to wait long in here any more.
    hurried: bool,
}

impl Wakeup {
    pub(crate) fn wake(&self) {
        self.state().woken = true;
        self.condition.notify_one();
    }

    /// From now on nobody waits long.
    pub(crate) fn hurry(&self) {
        self.state().hurried = true;
        self.condition.notify_one();
    }

    /// Waits until it is woken, or has waited long enough. A call from now on wakes the next wait.
    pub(crate) fn wait(&self) {
        let state = self.state();
        let mut state = if state.hurried {
            let waited = self.condition.wait_timeout_while(state, HURRIED, |state| !state.woken);
            waited.unwrap_or_else(PoisonError::into_inner).0
        } else {
            let waited = self.condition.wait_while(state, |state| !state.woken && !state.hurried);
            waited.unwrap_or_else(PoisonError::into_inner)
        };
        state.woken = false;
    }

    fn state(&self) -> MutexGuard<'_, WakeupState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
