//! One look at everything at once: the guards, the waiters, the store's own record of changes, and what it has lost.

use std::collections::BTreeMap;
use std::time::Duration;

use fencelock::driver::record::Holder;
use fencelock::port::limits::{GRANT_TTL, OPEN_FOR};
use fencelock::port::{Kind, Mode, Runtime};
use fencelock::{Claim, Token};

use super::state::{Doomed, Live, State, Watched};
use super::{Checker, Rule};
use crate::plan::{Plan, Subject};
use crate::server::{Change, Fact, Server, lives};

/// Room for the time that steps at one instant take in no time at all.
const SLACK: Duration = Duration::from_millis(50);
/// No ticket rests longer between two looks, and no attempt between two tries.
const LONGEST_REST: Duration = Duration::from_millis(1020);

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
        let mut state = self.state();
        self.read_facts(&mut state);
        self.look_at_guards(&mut state, now);
        self.look_at_waiters(&mut state, now);
        self.look_for_untold(&mut state, now);
        state.look_at_closed(now);
        self.look_for_ghosts(&mut state, now);
        self.look_at_cells(&mut state, now);
    }

    fn look_at_guards(&self, state: &mut State, now: Duration) {
        let mut found = Vec::new();
        let mut holders: Vec<Vec<&Live>> = vec![Vec::new(); state.locks.len()];
        for live in state.live.values_mut() {
            let client = &state.clients[live.client];
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
                let prompt = state.prompt && state.round_trip * 4 < least.min(GRANT_TTL);
                // A session that was not kept alive takes all leases with it, also those that began later.
                let lease = self.rules.sessions.unwrap_or_else(|| live.act.longest_lease());
                let healthy = prompt && client.works() && client.unhealthy + lease < now;
                // The longest it may be held is counted from its grant, which the guard's coming out follows.
                let held_for = client.node.now().since(live.since);
                let capped = live.act.max_hold.is_some_and(|most| {
                    held_for + state.round_trip + client.timeout + SLACK > most
                });
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
            let key = state.locks[live.lock].key.as_ref().expect("every lock has a key");
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
            state.violated(now, rule, detail);
        }
    }

    /// A lock that is free may not stay so for long while somebody waits who can be reached.
    fn look_at_waiters(&self, state: &mut State, now: Duration) {
        // A lock that was left open to a head that is gone stands open for a while.
        let open = if self.rules.fair || state.pushes { Duration::ZERO } else { OPEN_FOR };
        let bound = state.longest_sleep() + open;
        let mut found = Vec::new();
        for (number, lock) in state.locks.iter_mut().enumerate() {
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
            let waiting = state.pending.values_mut().filter(|one| one.lock == number && one.waits);
            for one in waiting {
                // Behind a guard of its own client, which has yet to learn that the store gave it up.
                let behind = |live: &Live| (live.client, live.lock) == (one.client, number);
                if state.live.values().any(|live| behind(live) && live.claim.is_held()) {
                    one.since = now;
                    continue;
                }
                let client = &state.clients[one.client];
                let since = since.max(one.since).max(client.disturbed);
                if state.prompt && client.works() && now > since + bound {
                    found.push((Rule::Starved, format!("client {}, lock {number}", one.client)));
                    lock.free = None;
                }
            }
        }
        for (rule, detail) in found {
            state.violated(now, rule, detail);
        }
    }

    /// Checks that no hold or place that a client has given up stays on the store for longer than a message takes.
    fn look_for_ghosts(&self, state: &mut State, now: Duration) {
        // A run that was given up is marked before its lock is freed, for as long as that takes.
        if !state.prompt || self.plan.subject == Subject::Jobs {
            return;
        }
        // On a quorum a vote may have been lost last, and what a node did not confirm is repeated.
        // An entry is removed once its making was answered.
        let ways = if self.stores.vote() || self.rules.sessions.is_some() { 6 } else { 1 };
        let reach = (state.round_trip / 2) * ways + Duration::from_millis(1) * ways * ways;
        let mut found = Vec::new();
        let mut look = |store: &mut Server| {
            for (key, record) in store.records() {
                let Some(lock) = state.locks.iter().position(|lock| lock.key.as_ref() == Some(key))
                else {
                    continue;
                };
                let holder = record.holders.iter().filter(|holder| holder.ends > store.now());
                let owners = holder.map(|holder| ("holds", holder.owner));
                let waits = record.tickets.iter().filter(|ticket| lives(ticket, store.now()));
                let waits = waits.map(|ticket| ("waits", ticket.owner));
                for (what, owner) in owners.chain(waits) {
                    let Some(channel) = store.client_of(owner) else { continue };
                    let mut clients = state.clients.iter();
                    let Some(client) = clients.position(|client| client.channel == *channel) else {
                        continue;
                    };
                    let watched = &state.clients[client];
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
            state.violated(now, Rule::Ghost, detail);
        }
    }

    /// Reads what has happened on the store since the last time.
    pub(super) fn read_facts(&self, state: &mut State) {
        if self.stores.vote() {
            // The nodes of a quorum have no queues, and tokens of their own.
            return;
        }
        let seen = state.facts_read;
        let news: Vec<Fact> = self.stores.first().store(|store| store.facts()[seen..].to_vec());
        state.facts_read += news.len();
        for fact in news {
            self.judge(state, &fact);
        }
    }

    fn judge(&self, state: &mut State, fact: &Fact) {
        let Some(lock) = state.locks.iter().position(|lock| lock.key.as_ref() == Some(&fact.lock))
        else {
            return;
        };
        match &fact.change {
            Change::Granted { token, queued, passed, dead } => {
                state.figures.hand_overs += u64::from(*queued);
                if *dead {
                    state.violated(
                        fact.at,
                        Rule::DeadGrantee,
                        format!("{:?} of lock {lock}", fact.owner),
                    );
                }
                if *passed > 0 && self.rules.fair {
                    let detail = format!("{:?} of lock {lock} went past {passed}", fact.owner);
                    state.violated(fact.at, Rule::Unfair, detail);
                }
                let newest = state.locks[lock].granted;
                if *token <= newest && !self.rules.forgets_tokens {
                    let detail = format!("lock {lock} was granted {token} after {newest}");
                    state.violated(fact.at, Rule::TokenFell, detail);
                }
                state.locks[lock].granted = Token::max(*token, newest);
                state.locks[lock].grants += 1;
            }
            Change::Unserved if self.rules.fair => {
                state.violated(fact.at, Rule::Unserved, format!("{:?} of lock {lock}", fact.owner));
            }
            Change::Ended => {
                let of = self.stores.first().store(|store| store.client_of(fact.owner).cloned());
                let client = state.clients.iter_mut().find(|one| of.as_ref() == Some(&one.channel));
                if let Some(client) = client {
                    client.ended[lock] = fact.at;
                }
            }
            Change::Queued { .. } | Change::Dropped | Change::Unserved => {}
        }
    }

    /// The store broke its word until now, and clients suffer from it until `until`: leases may be left over, or missing.
    pub fn unsettle_all(&self, until: Duration) {
        for watched in &mut self.state().clients {
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
        let mut state = self.state();
        let State { live, clients, locks, round_trip, prompt, .. } = &mut *state;
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

    /// A client that waits for a lock, and holds it on the store, learns of it in time.
    fn look_for_untold(&self, state: &mut State, now: Duration) {
        if !self.rules.faithful() || !self.rules.swift || self.stores.vote() || !state.prompt {
            return;
        }
        // An entry whose turn it is looks, and draws a token, before it holds.
        let looks = if self.rules.sessions.is_some() { 4 } else { 0 };
        let bound = state.longest_sleep() + state.round_trip * looks;
        let mut found = Vec::new();
        let network = self.stores.first();
        for lock in 0..state.locks.len() {
            let key = state.locks[lock].key.as_ref().expect("every lock has a key");
            let holders = network.holders(key);
            for (client, watched) in state.clients.iter().enumerate() {
                let own = holders.iter().map(|holder| holder.owner).find(|owner| {
                    network.store(|store| store.client_of(*owner) == Some(&watched.channel))
                });
                let here = |of: (usize, usize)| of == (client, lock);
                let shown = state.live.values().any(|live| here((live.client, live.lock)));
                let asked = state.pending.values().filter(|one| here((one.client, one.lock)));
                // Of two locks taken as one, the first is held while the other is waited for.
                let wait = asked.clone().all(|one| one.waits);
                let first = asked.map(|one| one.since).min();
                let (Some(owner), Some(asked), false, true) = (own, first, shown, wait) else {
                    state.unclaimed.remove(&(client, lock));
                    continue;
                };
                let unclaimed = state.unclaimed.entry((client, lock)).or_insert((owner, now));
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
            state.violated(now, Rule::Untold, detail);
        }
    }
}

impl State {
    /// How long a waiter may go without what the store has for it: as long as messages take, and where a push may be lost,
    /// until its ticket is looked at again.
    fn longest_sleep(&self) -> Duration {
        let rest = if self.pushes { Duration::ZERO } else { LONGEST_REST };
        rest + self.round_trip * 2 + SLACK
    }

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
