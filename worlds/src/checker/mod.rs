//! The rules of every world, watched from outside while it runs: the claims to locks, the waiters, and the records that the
//! store keeps at that very moment.

mod audit;
mod cells;
mod state;
mod violation;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fencelock::port::limits::{GRANT_TTL, TICKET_LIFE};
use fencelock::port::{Instant, LockKey, Runtime};
use fencelock::{Claim, Event, EventKind, Gate, Token};
use fencelock_sim::SimNode;

use self::audit::shortest_leases;
use self::state::{Live, Pending, Shared, State, Watched};
use super::plan::{Act, Plan, Subject, name};
use super::stores::Stores;

pub use self::cells::{Entry, Fate};
pub use self::violation::{Figures, Rule, Violation};

/// Watches one world.
#[derive(Debug)]
pub struct Checker {
    world: Arc<SimNode>,
    plan: Plan,
    stores: Stores,
    rules: Rules,
    /// The shortest lease that each client asks for of each lock: whoever goes on with another waiter's attempt begins with its lease.
    shortest: BTreeMap<(usize, usize), Duration>,
    state: Mutex<State>,
}

/// The promises that the checker can demand of this world.
#[derive(Clone, Copy, Debug)]
struct Rules {
    trust: Trust,
    /// Whether everybody asks to be served in order.
    fair: bool,
    forgets_tokens: bool,
    /// Whether leases are long beside the way to the store, so that no grant is over when it arrives.
    swift: bool,
    /// The longest lease that anybody asks for.
    longest_lease: Duration,
    /// How long a session lives, where leases live with sessions.
    sessions: Option<Duration>,
}

/// How far a world can be relied on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trust {
    /// Nothing at all fails.
    Calm,
    /// The store keeps its word.
    Faithful,
    /// It does not.
    Broken,
}

impl Rules {
    fn calm(self) -> bool {
        self.trust == Trust::Calm
    }

    fn faithful(self) -> bool {
        self.trust != Trust::Broken
    }
}

impl Checker {
    /// A checker for a world with these clients.
    pub fn new(
        plan: &Plan,
        world: &Arc<SimNode>,
        stores: &Stores,
        nodes: &[(Arc<SimNode>, Arc<str>)],
        traced: bool,
    ) -> Arc<Self> {
        let acts = || plan.tasks.iter().flat_map(|task| &task.acts);
        let conditions = &plan.conditions;
        let faults = [
            conditions.lost,
            conditions.late.0,
            conditions.refused,
            conditions.torn,
            conditions.doubled,
        ];
        // Far slower, and tickets end between two refreshes.
        let patience = plan.clients.iter().map(|machine| machine.timeout).min();
        let patience = patience.unwrap_or_default().min(TICKET_LIFE / 2);
        // A session that ends before its heartbeat is answered serves nobody.
        let session = (plan.subject == Subject::Sessions).then(|| plan.longest_lease());
        let patience = session.map_or(patience, |session| patience.min(session / 2));
        let prompt = faults == [0; 5] && conditions.round_trip() < patience;
        let shortest = acts().map(|act| act.ttl).min().unwrap_or_default().min(GRANT_TTL);
        let rules = Rules {
            trust: match (plan.faithful(), plan.calm()) {
                (false, _) => Trust::Broken,
                (true, true) => Trust::Calm,
                (true, false) => Trust::Faithful,
            },
            fair: acts().all(|act| act.fair),
            forgets_tokens: plan.forgets_tokens(),
            swift: conditions.round_trip() * 4 < shortest,
            longest_lease: plan.longest_lease(),
            sessions: session,
        };
        let clients = nodes.iter().zip(&plan.clients).map(|((node, channel), machine)| Watched {
            node: Arc::clone(node),
            channel: channel.clone(),
            timeout: machine.timeout,
            crashed: false,
            closed: None,
            kept: Duration::ZERO,
            disturbed: Duration::ZERO,
            unhealthy: Duration::ZERO,
            pauses: 0,
            acting: 0,
            idle: vec![(0, Duration::ZERO); plan.locks()],
            ended: vec![Duration::ZERO; plan.locks()],
        });
        let shared = |number: usize| Shared {
            key: Some(plan.key(number)),
            newest_of: vec![Token::default(); nodes.len()],
            alone_of: vec![Token::default(); nodes.len()],
            ..Shared::default()
        };
        let state = State {
            clients: clients.collect(),
            locks: (0..plan.locks()).map(shared).collect(),
            prompt,
            pushes: plan.calm() && conditions.notices_lost == 0 && !stores.vote(),
            round_trip: conditions.round_trip(),
            history: traced.then(Vec::new),
            ..State::default()
        };
        let (world, stores) = (Arc::clone(world), stores.clone());
        let shortest = shortest_leases(plan);
        let plan = plan.clone();
        Arc::new(Self { world, plan, stores, rules, shortest, state: Mutex::new(state) })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// True time.
    pub fn now(&self) -> Duration {
        self.world.now().since(Instant::default())
    }

    /// A promise was broken.
    pub fn violated(&self, rule: Rule, detail: String) {
        let at = self.now();
        self.state().violated(at, rule, detail);
    }

    /// Writes a line into the history, if one is kept.
    pub fn tell(&self, line: impl FnOnce() -> String) {
        let at = self.now();
        if let Some(history) = &mut self.state().history {
            history.push((at, line()));
        }
    }

    /// Counts.
    pub fn count(&self, count: impl FnOnce(&mut Figures)) {
        count(&mut self.state().figures);
    }

    /// How often a client's machine has stopped and gone on.
    pub fn pauses(&self, client: usize) -> u64 {
        self.state().clients[client].pauses
    }

    /// A task of a client begins something; until that is dropped it is at it.
    pub fn acts(self: &Arc<Self>, client: usize) -> Acting {
        self.state().clients[client].acting += 1;
        Acting { checker: Arc::clone(self), client }
    }

    /// Whether a client has nothing to do: it holds nothing, asks for nothing, gives nothing back.
    pub fn rests(&self, client: usize) -> bool {
        let state = self.state();
        !state.clients[client].crashed && state.clients[client].acting == 0
    }

    /// Whether nothing may fail here.
    pub fn calm(&self) -> bool {
        self.rules.calm()
    }

    /// Whether the store's clock jumps.
    pub fn jumps(&self) -> bool {
        self.plan.jumps()
    }

    /// A client is kept from its work until `until`, and needs some more to get over it.
    pub fn disturb(&self, client: usize, until: Duration, healthy: bool) {
        let mut state = self.state();
        let round_trip = state.round_trip;
        let watched = &mut state.clients[client];
        // A request that never gets an answer, the rest after it, and the next one.
        let until = until + watched.timeout * 2 + Duration::from_millis(1100) + round_trip;
        watched.kept = watched.kept.max(until);
        watched.disturbed = watched.disturbed.max(until);
        if !healthy {
            watched.unhealthy = watched.unhealthy.max(until);
        }
    }

    /// A node of the quorum fails: a hold that only a bare majority granted may be lost with it, until `until`.
    pub fn shaken(&self, until: Duration) {
        for watched in &mut self.state().clients {
            watched.unhealthy = watched.unhealthy.max(until);
        }
    }

    /// The same for all.
    pub fn disturb_all(&self, until: Duration) {
        let clients = self.state().clients.len();
        (0..clients).for_each(|client| self.disturb(client, until, false));
    }

    /// A machine stands still from now on, or goes on.
    pub fn paused(&self, client: usize) {
        self.state().clients[client].pauses += 1;
    }

    /// A machine is no more.
    pub fn crashed(&self, client: usize) {
        self.state().clients[client].crashed = true;
    }

    /// A client is closed: whoever waits in it has to hear of it, and nobody gives back what it still holds.
    pub fn closed(&self, client: usize) {
        let now = self.now();
        self.state().clients[client].closed.get_or_insert(now);
    }

    /// A task asks for a lock; until the span is dropped it does.
    pub fn asks(self: &Arc<Self>, client: usize, lock: usize, act: &Act, waits: bool) -> Span {
        let (since, mode, scoped) = (self.now(), act.mode, act.scope.is_some());
        let mut state = self.state();
        state.numbers += 1;
        let number = state.numbers;
        state.pending.insert(number, Pending { client, lock, mode, scoped, waits, since });
        state.clients[client].idle[lock].0 += 1;
        Span { checker: Arc::clone(self), client, lock, number }
    }

    /// A guard was given out; until the span is dropped it counts.
    pub fn holds(self: &Arc<Self>, client: usize, lock: usize, act: &Act, claim: &Claim) -> Span {
        let at = self.now();
        let (held, token, mode) = (claim.is_held(), claim.token(), claim.mode());
        let mut state = self.state();
        state.figures.grants += 1;
        if let Some(history) = &mut state.history {
            history.push((at, format!("client {client} holds lock {lock} with {token}: {held}")));
        }
        if !held {
            state.violated(at, Rule::BornLost, format!("client {client}, token {token}"));
        }
        let again = act.scope.is_some() && state.enters_again((client, lock), token, at);
        let shared = &mut state.locks[lock];
        // A guard that says from the beginning that it is lost may come late.
        if held && !again {
            let before = shared.saw(client, token, mode, self.rules.faithful());
            if token <= before {
                let detail = format!("client {client}: {token} after {before}");
                state.violated(at, Rule::TokenFell, detail);
            }
        }
        state.numbers += 1;
        let number = state.numbers;
        let live = Live {
            client,
            lock,
            claim: claim.clone(),
            since: state.clients[client].node.now(),
            act: act.clone(),
            unheld: None,
            awaits: false,
            heard: false,
            doomed: None,
        };
        state.live.insert(number, live);
        state.clients[client].idle[lock].0 += 1;
        if self.stores.vote() {
            // What the nodes grant is not yet a grant.
            state.locks[lock].grants += 1;
        }
        if act.scope.is_some() || self.stores.vote() && !mode.is_exclusive() {
            *state.shared.entry((client, self.plan.key(lock), token)).or_default() += 1;
        }
        drop(state);
        self.audit();
        let mut state = self.state();
        // Not the token of the store's grant: it was passed on inside.
        state.figures.hand_overs += u64::from(token > state.locks[lock].granted);
        drop(state);
        Span { checker: Arc::clone(self), client, lock, number }
    }

    /// Whether a task awaits the loss of a guard, and whether it has heard of it.
    pub fn awaits_loss(&self, span: &Span, awaits: bool, heard: bool) {
        if let Some(live) = self.state().live.get_mut(&span.number) {
            live.awaits = awaits;
            live.heard |= heard;
        }
    }

    /// An event of a client.
    pub fn event(&self, client: usize, event: &Event) {
        let (EventKind::Lost, Some(token)) = (event.kind, event.token) else { return };
        let at = self.now();
        let key = LockKey::new(event.name.clone());
        let mut state = self.state();
        state.figures.losses += 1;
        if let Some(history) = &mut state.history {
            history.push((at, format!("client {client} is told that {token} is lost")));
        }
        let guard = (client, key, token);
        let guards = state.shared.get(&guard).copied().unwrap_or_default().max(1);
        let told = state.told.entry(guard).or_default();
        *told += 1;
        if *told > guards {
            let detail = format!("client {client} was told twice that {token} is lost");
            state.violated(at, Rule::LossUntold, detail);
        }
    }

    /// From now on messages arrive, and take at most half of `round_trip`.
    pub fn healed(&self, round_trip: Duration) {
        let mut state = self.state();
        state.round_trip = state.round_trip.max(round_trip);
        state.prompt = true;
    }

    /// Checks a grant by the client's order: nobody of this client who came earlier may still wait for it. A client that stood still
    /// may have lost its turn unseen.
    pub fn served(&self, span: &Span) {
        let now = self.now();
        let mut state = self.state();
        let Some(one) = state.pending.get(&span.number) else { return };
        // Whoever enters once more passes the line, and waits in none for the first of its scope.
        let lines_up =
            one.mode.is_exclusive() && !one.scoped && state.clients[one.client].disturbed < now;
        let mut earlier = state.pending.range(..span.number).map(|(_, other)| other);
        let passed = earlier.any(|other| {
            let same = (other.client, other.lock, other.mode) == (one.client, one.lock, one.mode);
            same && other.waits && !other.scoped
        });
        if lines_up && passed {
            let detail = format!("within client {}, for lock {}", one.client, one.lock);
            state.violated(now, Rule::Unfair, detail);
        }
    }

    /// A release that began at `since` was told to have freed the hold: then the store has ended one since.
    pub fn told_freed(&self, client: usize, act: &Act, since: Duration) {
        // What is renewed and held alone may have been passed on inside.
        if self.stores.vote() || act.renew && act.mode.is_exclusive() {
            return;
        }
        let now = self.now();
        let mut state = self.state();
        self.read_facts(&mut state);
        if state.clients[client].ended[act.lock] < since {
            let detail = format!("client {client}, lock {}, since {since:?}", act.lock);
            state.violated(now, Rule::FalselyFreed, detail);
        }
    }

    /// Reads the resource of a lock, which shuts out all older tokens; `None` if a newer one has been here.
    pub fn read(&self, gate: &Gate, lock: usize, token: Token) -> Option<u64> {
        let read = gate.write(&name(lock), token, || self.state().locks[lock].value);
        self.passed(lock, token, read.is_ok());
        read.ok()
    }

    /// Writes the resource, if no newer token has been here.
    pub fn write(&self, gate: &Gate, lock: usize, token: Token, value: u64) {
        let wrote = gate.write(&name(lock), token, || {
            let shared = &mut self.state().locks[lock];
            shared.value = value;
            shared.accepted += 1;
        });
        self.passed(lock, token, wrote.is_ok());
    }

    fn passed(&self, lock: usize, token: Token, passed: bool) {
        let at = self.now();
        let mut state = self.state();
        let newest = state.locks[lock].wrote;
        if !passed {
            state.figures.refusals += 1;
            if self.rules.calm() {
                state.violated(at, Rule::StaleWrite, format!("{token} came after {newest}"));
            }
            return;
        }
        if token < newest {
            state.violated(at, Rule::StaleWrite, format!("{token} passed the gate after {newest}"));
        }
        state.locks[lock].wrote = newest.max(token);
    }

    /// Compares every resource with the writes it took, and what was told of cells with what happened to them.
    pub fn take_stock(&self) {
        let at = self.now();
        let mut state = self.state();
        self.look_at_fates(&mut state, at);
        for lock in 0..state.locks.len() {
            let (value, accepted) = (state.locks[lock].value, state.locks[lock].accepted);
            if value != accepted && !self.rules.forgets_tokens {
                let detail = format!("resource {lock} is at {value} after {accepted} writes");
                state.violated(at, Rule::StaleWrite, detail);
            }
        }
    }

    /// Takes what was found and written down.
    pub fn close(&self) -> (Figures, Vec<Violation>, Vec<(Duration, String)>) {
        let mut state = self.state();
        let history = state.history.take().unwrap_or_default();
        (state.figures, std::mem::take(&mut state.violations), history)
    }
}

/// Something a task does or has; dropping it says that it does not any more.
#[derive(Debug)]
pub struct Span {
    checker: Arc<Checker>,
    client: usize,
    lock: usize,
    number: u64,
}

impl Drop for Span {
    fn drop(&mut self) {
        let now = self.checker.now();
        let mut state = self.checker.state();
        state.pending.remove(&self.number);
        let live = state.live.remove(&self.number);
        let idle = &mut state.clients[self.client].idle[self.lock];
        *idle = (idle.0 - 1, now);
        state.leaves((self.client, self.lock), now);
        drop(state);
        // With the state released: the last claim of a client takes the client with it.
        drop(live);
    }
}

/// Something a task of a client is at; dropping it says that it is done.
#[derive(Debug)]
pub struct Acting {
    checker: Arc<Checker>,
    client: usize,
}

impl Drop for Acting {
    fn drop(&mut self) {
        self.checker.state().clients[self.client].acting -= 1;
    }
}
