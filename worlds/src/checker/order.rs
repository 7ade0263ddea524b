//! The order of those who wait in one client, and what they are told at the end.

use std::time::Duration;

use super::note::Note;
use super::{Checker, Rule};
use crate::plan::Act;

impl Checker {
    /// Checks a grant by the client's order: nobody of this client who came earlier may still wait for it. A client that stood still
    /// may have lost its turn unseen.
    pub fn served(&self, note: &Note) {
        let now = self.now();
        let mut book = self.book();
        let Some(one) = book.pending.get(&note.number) else { return };
        // Whoever enters once more passes the line, and waits in none for the first of its scope.
        let lines_up =
            one.mode.is_exclusive() && !one.scoped && book.clients[one.client].disturbed < now;
        let mut earlier = book.pending.range(..note.number).map(|(_, other)| other);
        let passed = earlier.any(|other| {
            let same = (other.client, other.lock, other.mode) == (one.client, one.lock, one.mode);
            same && other.waits && !other.scoped
        });
        if lines_up && passed {
            let detail = format!("within client {}, for lock {}", one.client, one.lock);
            book.violated(now, Rule::Unfair, detail);
        }
    }

    /// A release that began at `since` was told to have freed the hold: then the store has ended one since.
    pub fn told_freed(&self, client: usize, act: &Act, since: Duration) {
        // What is renewed and held alone may have been passed on inside.
        if self.stores.vote() || act.renew && act.mode.is_exclusive() {
            return;
        }
        let now = self.now();
        let mut book = self.book();
        self.read_facts(&mut book);
        if book.clients[client].ended[act.lock] < since {
            let detail = format!("client {client}, lock {}, since {since:?}", act.lock);
            book.violated(now, Rule::FalselyFreed, detail);
        }
    }
}
