//! What the draining thread waits for.

use std::sync::{Condvar, Mutex, PoisonError};

/// Rung by whoever has news, heard once however often it was rung.
#[derive(Default)]
pub(crate) struct Bell {
    rung: Mutex<bool>,
    heard: Condvar,
}

impl Bell {
    pub(crate) fn ring(&self) {
        *self.rung.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.heard.notify_one();
    }

    /// Waits until it is rung. Whatever is rung for from now on is heard by the next wait.
    pub(crate) fn wait(&self) {
        let rung = self.rung.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.heard.wait_while(rung, |rung| !*rung);
        *waited.unwrap_or_else(PoisonError::into_inner) = false;
    }
}
