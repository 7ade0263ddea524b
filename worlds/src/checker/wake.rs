//! Wake-ups: whoever is served on the store hears of it.

use std::time::Duration;

use super::audit::{LONGEST_REST, SLACK};
use super::book::Book;
use super::{Checker, Rule};

impl Book {
    /// How long a waiter may go without what the store has for it: as long as messages take, and where a push may be lost,
    /// until its ticket is looked at again.
    pub(super) fn longest_sleep(&self) -> Duration {
        let rest = if self.pushes { Duration::ZERO } else { LONGEST_REST };
        rest + self.round_trip * 2 + SLACK
    }
}

impl Checker {
    /// A client that waits for a lock, and holds it on the store, learns of it in time.
    pub(super) fn look_for_untold(&self, book: &mut Book, now: Duration) {
        if !self.rules.faithful() || !self.rules.swift || self.stores.vote() || !book.prompt {
            return;
        }
        // An entry whose turn it is looks, and draws a token, before it holds.
        let looks = if self.rules.sessions.is_some() { 4 } else { 0 };
        let bound = book.longest_sleep() + book.round_trip * looks;
        let mut found = Vec::new();
        let network = self.stores.first();
        for lock in 0..book.locks.len() {
            let key = book.locks[lock].key.as_ref().expect("every lock has a key");
            let holders = network.holders(key);
            for (client, watched) in book.clients.iter().enumerate() {
                let own = holders.iter().map(|holder| holder.owner).find(|owner| {
                    network.store(|store| store.client_of(*owner) == Some(&watched.channel))
                });
                let here = |of: (usize, usize)| of == (client, lock);
                let shown = book.live.values().any(|live| here((live.client, live.lock)));
                let asked = book.pending.values().filter(|one| here((one.client, one.lock)));
                // Of two locks taken as one, the first is held while the other is waited for.
                let wait = asked.clone().all(|one| one.waits);
                let first = asked.map(|one| one.since).min();
                let (Some(owner), Some(asked), false, true) = (own, first, shown, wait) else {
                    book.unclaimed.remove(&(client, lock));
                    continue;
                };
                let unclaimed = book.unclaimed.entry((client, lock)).or_insert((owner, now));
                if unclaimed.0 != owner {
                    *unclaimed = (owner, now);
                }
                let since = unclaimed.1.max(asked).max(watched.disturbed);
                if watched.works() && now > since + bound {
                    unclaimed.1 = now;
                    found.push(format!("client {client} holds lock {lock} since {since:?}"));
                }
            }
        }
        for detail in found {
            book.violated(now, Rule::Untold, detail);
        }
    }
}
