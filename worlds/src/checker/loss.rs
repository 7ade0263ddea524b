//! Losses that only the store knows of at first.

use std::time::Duration;

use super::Checker;
use super::book::{Book, Doomed};

impl Checker {
    /// The store broke its word until now, and clients suffer from it until `until`: leases may be left over, or missing.
    pub fn unsettle_all(&self, until: Duration) {
        for watched in &mut self.book().clients {
            watched.disturbed = watched.disturbed.max(until);
            watched.unhealthy = watched.unhealthy.max(until);
        }
    }

    /// The store has lost something: whoever renews what is gone has to notice with the next renewal.
    pub fn forsaken(&self) {
        if self.stores.vote() {
            return;
        }
        let now = self.now();
        let network = self.stores.first();
        let mut book = self.book();
        let Book { live, clients, locks, round_trip, prompt, .. } = &mut *book;
        for live in live.values_mut() {
            let client = &clients[live.client];
            let key = locks[live.lock].key.as_ref().expect("every lock has a key");
            let holders = network.holders(key).into_iter().map(|holder| holder.owner);
            // A ticket that is back in the queue may be served once more, as the same hold.
            let kept = network.store(|store| {
                let tickets = store.records().get(key).map(|record| &record.tickets);
                let waiting = tickets.into_iter().flatten().map(|ticket| ticket.owner);
                holders.chain(waiting).any(|owner| store.client_of(owner) == Some(&client.channel))
            });
            // What is capped says little of the lease behind it.
            let renewed = live.act.renew && live.act.max_hold.is_none();
            let works = *prompt && !client.crashed && client.kept < now;
            if kept {
                live.doomed = None;
            } else if renewed && works && live.claim.is_held() {
                // A third of the lease, what may be under way already, the answer.
                let lease = live.claim.remaining().max(live.act.longest_lease());
                let slack = *round_trip * 2 + Duration::from_millis(20);
                live.doomed.get_or_insert(Doomed { at: now, lease, slack });
            }
        }
    }
}
