//! The checker's note of a task that asks, holds or is at something, for as long as it is.

use std::sync::Arc;

use super::Checker;

/// Something a task does or has; dropping it says that it does not any more.
#[derive(Debug)]
pub struct Note {
    pub(super) checker: Arc<Checker>,
    pub(super) client: usize,
    pub(super) lock: usize,
    pub(super) number: u64,
}

impl Drop for Note {
    fn drop(&mut self) {
        let now = self.checker.now();
        let mut book = self.checker.book();
        book.pending.remove(&self.number);
        let live = book.live.remove(&self.number);
        let idle = &mut book.clients[self.client].idle[self.lock];
        *idle = (idle.0 - 1, now);
        book.leaves((self.client, self.lock), now);
        drop(book);
        // With the book closed: the last claim of a client takes the client with it.
        drop(live);
    }
}

/// Something a task of a client is at; dropping it says that it is done.
#[derive(Debug)]
pub struct Acting {
    pub(super) checker: Arc<Checker>,
    pub(super) client: usize,
}

impl Drop for Acting {
    fn drop(&mut self) {
        self.checker.book().clients[self.client].acting -= 1;
    }
}
