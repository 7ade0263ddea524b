//! One look at everything at once.

use std::collections::BTreeMap;
use std::time::Duration;

use fencelock::Claim;
use fencelock::driver::record::Holder;
use fencelock::port::limits::{GRANT_TTL, OPEN_FOR};
use fencelock::port::{Kind, Mode, Runtime};

use super::book::{Book, Live, Watched};
use super::{Checker, Rule};
use crate::plan::Plan;
use crate::server::{Server, lives};

/// Room for the time that steps at one instant take in no time at all.
pub(super) const SLACK: Duration = Duration::from_millis(50);
/// No ticket rests longer between two looks, and no attempt between two tries.
pub(super) const LONGEST_REST: Duration = Duration::from_millis(1020);

/// How long a close may take.
const CLOSING: Duration = Duration::from_millis(2100);

/// The shortest lease that each client asks for of each lock.
pub(super) fn shortest_leases(plan: &Plan) -> BTreeMap<(usize, usize), Duration> {
    let mut shortest = BTreeMap::new();
    for (client, act) in
        plan.tasks.iter().flat_map(|task| task.acts.iter().map(|act| (task.client, act)))
    {
        for lock in [Some(act.lock), act.also].into_iter().flatten() {
            let least = shortest.entry((client, lock)).or_insert(act.ttl);
            *least = act.ttl.min(*least);
        }
    }
    shortest
}

impl Checker {
    /// Looks at every guard, every waiter and everything on the store.
    pub fn audit(&self) {
        let now = self.now();
        let mut book = self.book();
        self.read_facts(&mut book);
        self.look_at_guards(&mut book, now);
        self.look_at_waiters(&mut book, now);
        self.look_for_untold(&mut book, now);
        book.look_at_closed(now);
        self.look_for_ghosts(&mut book, now);
    }

    fn look_at_guards(&self, book: &mut Book, now: Duration) {
        let mut found = Vec::new();
        let mut holders: Vec<Vec<&Live>> = vec![Vec::new(); book.locks.len()];
        for live in book.live.values_mut() {
            let client = &book.clients[live.client];
            let name =
                format!("client {}, lock {}, {}", live.client, live.lock, live.claim.token());
            if !live.claim.is_held() {
                let paused = client.disturbed > now;
                let untold = live.awaits && !live.heard && !paused;
                if untold && live.unheld.is_some_and(|since| now > since + SLACK) {
                    found.push((Rule::LossUntold, name.clone()));
                    live.heard = true;
                }
                let least = self.shortest.get(&(live.client, live.lock));
                let least = least.map_or(live.act.ttl, |least| live.act.ttl.min(*least));
                let prompt = book.prompt && book.round_trip * 4 < least.min(GRANT_TTL);
                // A session that was not kept alive takes all leases with it, also those that began later.
                let lease = self.rules.sessions.unwrap_or_else(|| live.act.longest_lease());
                let healthy = prompt && client.works() && client.unhealthy + lease < now;
                // The longest it may be held is counted from its grant, which the guard's coming out follows.
                let held_for = client.node.now().since(live.since);
                let capped = live
                    .act
                    .max_hold
                    .is_some_and(|most| held_for + book.round_trip + client.timeout + SLACK > most);
                let renewed = live.act.renew && !capped && !live.act.extends();
                let innocent = self.rules.calm() || (healthy && renewed && self.rules.faithful());
                if live.unheld.is_none() && innocent {
                    found.push((Rule::FalselyLost, name));
                }
                live.unheld.get_or_insert(now);
                continue;
            }
            if live.unheld.is_some() {
                found.push((Rule::Revived, name.clone()));
            }
            let left = live.claim.remaining();
            // Whatever the store answers: nobody asked for more.
            if left > self.rules.longest_lease {
                found.push((Rule::HeldTooLong, format!("{name} believes in {left:?} more")));
            }
            let overdue = live.doomed.is_some_and(|doomed| doomed.is_overdue(now, left));
            if overdue && client.kept < now {
                found.push((Rule::LossUntold, format!("{name} is gone from the store")));
                live.doomed = None;
            }
            let held_for = client.node.now().since(live.since);
            if live.act.max_hold.is_some_and(|most| held_for > most) {
                found.push((Rule::HeldTooLong, name.clone()));
            }
            if !self.rules.faithful() {
                continue;
            }
            let key = book.locks[live.lock].key.as_ref().expect("every lock has a key");
            let channel = &client.channel;
            let backed = self.stores.back(key, now, |holder, network| {
                let of = network.store(|store| store.client_of(holder.owner).cloned());
                // The nodes of a quorum may have drawn tokens of their own, below the one that was agreed on.
                if self.stores.vote() {
                    of.as_ref() == Some(channel) && keeps_out(holder, &live.claim)
                } else {
                    backs(holder, &live.claim)
                }
            });
            if !backed {
                found.push((Rule::Unbacked, name.clone()));
            }
            let live: &Live = live;
            for other in &holders[live.lock] {
                if !stand_together(live, other) {
                    let other = format!("client {}, {}", other.client, other.claim.token());
                    found.push((Rule::Overlap, format!("{name} and {other}")));
                }
            }
            holders[live.lock].push(live);
            let count: u32 = holders[live.lock].iter().map(|live| live.act.permits).sum();
            if live.act.kind() == Kind::Semaphore && count > live.act.limit {
                found.push((Rule::Overlap, format!("{count} permits of {}", live.act.limit)));
            }
        }
        for (rule, detail) in found {
            book.violated(now, rule, detail);
        }
    }

    /// A lock that is free may not stay so for long while somebody waits who can be reached.
    fn look_at_waiters(&self, book: &mut Book, now: Duration) {
        // A lock that was left open to a head that is gone stands open for a while.
        let open = if self.rules.fair || book.pushes { Duration::ZERO } else { OPEN_FOR };
        let bound = book.longest_sleep() + open;
        let mut found = Vec::new();
        for (number, lock) in book.locks.iter_mut().enumerate() {
            let key = lock.key.as_ref().expect("every lock has a key");
            if !self.stores.are_free(key, now) {
                lock.free = None;
                continue;
            }
            let (since, grants) = *lock.free.get_or_insert((now, lock.grants));
            if grants != lock.grants {
                lock.free = Some((now, lock.grants));
                continue;
            }
            let waiting = book.pending.values_mut().filter(|one| one.lock == number && one.waits);
            for one in waiting {
                // Behind a guard of its own client, which has yet to learn that the store gave it up.
                let behind = |live: &Live| (live.client, live.lock) == (one.client, number);
                if book.live.values().any(|live| behind(live) && live.claim.is_held()) {
                    one.since = now;
                    continue;
                }
                let client = &book.clients[one.client];
                let since = since.max(one.since).max(client.disturbed);
                if book.prompt && client.works() && now > since + bound {
                    found.push((Rule::Starved, format!("client {}, lock {number}", one.client)));
                    lock.free = None;
                }
            }
        }
        for (rule, detail) in found {
            book.violated(now, rule, detail);
        }
    }

    /// Checks that no hold or place that a client has given up stays on the store for longer than a message takes.
    fn look_for_ghosts(&self, book: &mut Book, now: Duration) {
        if !book.prompt {
            return;
        }
        // On a quorum a vote may have been lost last, and what a node did not confirm is repeated.
        // An entry is removed once its making was answered.
        let ways = if self.stores.vote() || self.rules.sessions.is_some() { 6 } else { 1 };
        let reach = (book.round_trip / 2) * ways + Duration::from_millis(1) * ways * ways;
        let mut found = Vec::new();
        let mut look = |store: &mut Server| {
            for (key, record) in store.records() {
                let Some(lock) = book.locks.iter().position(|lock| lock.key.as_ref() == Some(key))
                else {
                    continue;
                };
                let holder = record.holders.iter().filter(|holder| holder.ends > store.now());
                let owners = holder.map(|holder| ("holds", holder.owner));
                let waits = record.tickets.iter().filter(|ticket| lives(ticket, store.now()));
                let waits = waits.map(|ticket| ("waits", ticket.owner));
                for (what, owner) in owners.chain(waits) {
                    let Some(channel) = store.client_of(owner) else { continue };
                    let mut clients = book.clients.iter();
                    let Some(client) = clients.position(|client| client.channel == *channel) else {
                        continue;
                    };
                    let watched = &book.clients[client];
                    let (busy, since) = watched.idle[lock];
                    let since = since.max(watched.disturbed);
                    if busy == 0 && watched.works() && now > since + reach {
                        let detail = format!("{owner:?} of client {client} {what} lock {lock}");
                        found.push(detail);
                    }
                }
            }
        };
        self.stores.healthy(now).for_each(|network| network.store(&mut look));
        if let Some(detail) = found.pop() {
            book.violated(now, Rule::Ghost, detail);
        }
    }
}

impl Book {
    /// Checks that everybody who waits in a closed client learns of the close in time.
    fn look_at_closed(&mut self, now: Duration) {
        let mut found = Vec::new();
        for one in self.pending.values_mut() {
            let client = &self.clients[one.client];
            let bound = CLOSING + client.timeout + LONGEST_REST;
            let told = client.closed.map(|at| at.max(client.disturbed).max(one.since) + bound);
            if told.is_some_and(|by| now > by) && !client.crashed {
                found.push(format!(
                    "client {} is closed, lock {} is waited for",
                    one.client, one.lock
                ));
                one.since = Duration::MAX / 2;
            }
        }
        for detail in found {
            self.violated(now, Rule::Stuck, detail);
        }
    }
}

impl Watched {
    pub(super) fn works(&self) -> bool {
        !self.crashed && self.closed.is_none()
    }
}

/// Whether two may hold at once.
fn stand_together(one: &Live, other: &Live) -> bool {
    let both = (one.claim.mode(), other.claim.mode());
    if one.act.scope.is_some() && other.act.scope.is_some() && one.client == other.client {
        return one.claim.token() == other.claim.token();
    }
    one.act.kind() == other.act.kind()
        && matches!(both, (Mode::Permit, Mode::Permit) | (Mode::Read, Mode::Read))
}

/// Whether this hold keeps out whom the claim excludes.
fn keeps_out(holder: &Holder, claim: &Claim) -> bool {
    !claim.mode().is_exclusive() || holder.mode.is_exclusive()
}

/// Whether this hold is the one that is claimed.
fn backs(holder: &Holder, claim: &Claim) -> bool {
    let token = claim.token().get();
    keeps_out(holder, claim) && holder.token <= token && token < holder.token + 64
}
