//! The rules of every world, watched from outside while it runs: the claims to locks, the waiters, and the records that the
//! store keeps at that very moment.

mod audit;
mod book;
mod facts;
mod loss;
mod note;
mod order;
mod resource;
mod violation;
mod wake;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fencelock::port::limits::{GRANT_TTL, TICKET_LIFE};
use fencelock::port::{Instant, LockKey, Runtime};
use fencelock::{Claim, Event, EventKind, Token};
use fencelock_sim::SimNode;

use self::audit::shortest_leases;
use self::book::{Book, Live, Pending, Shared, Watched};
use super::plan::{Act, Plan};
use super::stores::Stores;

pub use self::note::{Acting, Note};
pub use self::violation::{Figures, Rule, Violation};

/// Watches one world.
#[derive(Debug)]
pub struct Checker {
    world: Arc<SimNode>,
    stores: Stores,
    rules: Rules,
    /// The shortest lease that each client asks for of each lock: whoever goes on with another waiter's attempt begins with its lease.
    shortest: BTreeMap<(usize, usize), Duration>,
    book: Mutex<Book>,
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
        let weather = &plan.weather;
        let faults = [weather.lost, weather.late.0, weather.refused, weather.torn, weather.doubled];
        // Far slower, and tickets end between two refreshes.
        let patience = plan.clients.iter().map(|machine| machine.timeout).min();
        let patience = patience.unwrap_or_default().min(TICKET_LIFE / 2);
        // A session that ends before its heartbeat is answered serves nobody.
        let session = plan.sessions.then(|| plan.longest_lease());
        let patience = session.map_or(patience, |session| patience.min(session / 2));
        let prompt = faults == [0; 5] && weather.round_trip() < patience;
        let shortest = acts().map(|act| act.ttl).min().unwrap_or_default().min(GRANT_TTL);
        let rules = Rules {
            trust: match (plan.faithful(), plan.calm()) {
                (false, _) => Trust::Broken,
                (true, true) => Trust::Calm,
                (true, false) => Trust::Faithful,
            },
            fair: acts().all(|act| act.fair),
            forgets_tokens: plan.forgets_tokens(),
            swift: weather.round_trip() * 4 < shortest,
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
            key: Some(lock_key(number)),
            newest_of: vec![Token::default(); nodes.len()],
            alone_of: vec![Token::default(); nodes.len()],
            ..Shared::default()
        };
        let book = Book {
            clients: clients.collect(),
            locks: (0..plan.locks()).map(shared).collect(),
            prompt,
            pushes: plan.calm() && weather.notices_lost == 0 && !stores.vote(),
            round_trip: weather.round_trip(),
            history: traced.then(Vec::new),
            ..Book::default()
        };
        let (world, stores) = (Arc::clone(world), stores.clone());
        let shortest = shortest_leases(plan);
        Arc::new(Self { world, stores, rules, shortest, book: Mutex::new(book) })
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// True time.
    pub fn now(&self) -> Duration {
        self.world.now().since(Instant::default())
    }

    /// A promise was broken.
    pub fn violated(&self, rule: Rule, detail: String) {
        let at = self.now();
        self.book().violated(at, rule, detail);
    }

    /// Writes a line into the history, if one is kept.
    pub fn tell(&self, line: impl FnOnce() -> String) {
        let at = self.now();
        if let Some(history) = &mut self.book().history {
            history.push((at, line()));
        }
    }

    /// Counts.
    pub fn count(&self, count: impl FnOnce(&mut Figures)) {
        count(&mut self.book().figures);
    }

    /// How often a client's machine has stopped and gone on.
    pub fn pauses(&self, client: usize) -> u64 {
        self.book().clients[client].pauses
    }

    /// A task of a client begins something; until that is dropped it is at it.
    pub fn acts(self: &Arc<Self>, client: usize) -> Acting {
        self.book().clients[client].acting += 1;
        Acting { checker: Arc::clone(self), client }
    }

    /// Whether a client has nothing to do: it holds nothing, asks for nothing, gives nothing back.
    pub fn rests(&self, client: usize) -> bool {
        let book = self.book();
        !book.clients[client].crashed && book.clients[client].acting == 0
    }

    /// Whether nothing may fail here.
    pub fn calm(&self) -> bool {
        self.rules.calm()
    }

    /// A client is kept from its work until `until`, and needs some more to get over it.
    pub fn disturb(&self, client: usize, until: Duration, healthy: bool) {
        let mut book = self.book();
        let round_trip = book.round_trip;
        let watched = &mut book.clients[client];
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
        for watched in &mut self.book().clients {
            watched.unhealthy = watched.unhealthy.max(until);
        }
    }

    /// The same for all.
    pub fn disturb_all(&self, until: Duration) {
        let clients = self.book().clients.len();
        (0..clients).for_each(|client| self.disturb(client, until, false));
    }

    /// A machine stands still from now on, or goes on.
    pub fn paused(&self, client: usize) {
        self.book().clients[client].pauses += 1;
    }

    /// A machine is no more.
    pub fn crashed(&self, client: usize) {
        self.book().clients[client].crashed = true;
    }

    /// A client is closed: whoever waits in it has to hear of it, and nobody gives back what it still holds.
    pub fn closed(&self, client: usize) {
        let now = self.now();
        self.book().clients[client].closed.get_or_insert(now);
    }

    /// A task asks for a lock; until the note is dropped it does.
    pub fn asks(self: &Arc<Self>, client: usize, lock: usize, act: &Act, waits: bool) -> Note {
        let (since, mode, scoped) = (self.now(), act.mode, act.scope.is_some());
        let mut book = self.book();
        book.numbers += 1;
        let number = book.numbers;
        book.pending.insert(number, Pending { client, lock, mode, scoped, waits, since });
        book.clients[client].idle[lock].0 += 1;
        Note { checker: Arc::clone(self), client, lock, number }
    }

    /// A guard was given out; until the note is dropped it counts.
    pub fn holds(self: &Arc<Self>, client: usize, lock: usize, act: &Act, claim: &Claim) -> Note {
        let at = self.now();
        let (held, token, mode) = (claim.is_held(), claim.token(), claim.mode());
        let mut book = self.book();
        book.figures.grants += 1;
        if let Some(history) = &mut book.history {
            history.push((at, format!("client {client} holds lock {lock} with {token}: {held}")));
        }
        if !held {
            book.violated(at, Rule::BornLost, format!("client {client}, token {token}"));
        }
        let again = act.scope.is_some() && book.enters_again((client, lock), token, at);
        let shared = &mut book.locks[lock];
        // A guard that says from the beginning that it is lost may come late.
        if held && !again {
            let before = shared.saw(client, token, mode, self.rules.faithful());
            if token <= before {
                let detail = format!("client {client}: {token} after {before}");
                book.violated(at, Rule::TokenFell, detail);
            }
        }
        book.numbers += 1;
        let number = book.numbers;
        let live = Live {
            client,
            lock,
            claim: claim.clone(),
            since: book.clients[client].node.now(),
            act: act.clone(),
            unheld: None,
            awaits: false,
            heard: false,
            doomed: None,
        };
        book.live.insert(number, live);
        book.clients[client].idle[lock].0 += 1;
        if self.stores.vote() {
            // What the nodes grant is not yet a grant.
            book.locks[lock].grants += 1;
        }
        if act.scope.is_some() || self.stores.vote() && !mode.is_exclusive() {
            *book.shared.entry((client, lock_key(lock), token)).or_default() += 1;
        }
        drop(book);
        self.audit();
        let mut book = self.book();
        // Not the token of the store's grant: it was passed on inside.
        book.figures.hand_overs += u64::from(token > book.locks[lock].granted);
        drop(book);
        Note { checker: Arc::clone(self), client, lock, number }
    }

    /// Whether a task awaits the loss of a guard, and whether it has heard of it.
    pub fn awaits_loss(&self, note: &Note, awaits: bool, heard: bool) {
        if let Some(live) = self.book().live.get_mut(&note.number) {
            live.awaits = awaits;
            live.heard |= heard;
        }
    }

    /// An event of a client.
    pub fn event(&self, client: usize, event: &Event) {
        let (EventKind::Lost, Some(token)) = (event.kind, event.token) else { return };
        let at = self.now();
        let key = LockKey::new(event.name.clone());
        let mut book = self.book();
        book.figures.losses += 1;
        if let Some(history) = &mut book.history {
            history.push((at, format!("client {client} is told that {token} is lost")));
        }
        let guard = (client, key, token);
        let guards = book.shared.get(&guard).copied().unwrap_or_default().max(1);
        let told = book.told.entry(guard).or_default();
        *told += 1;
        if *told > guards {
            let detail = format!("client {client} was told twice that {token} is lost");
            book.violated(at, Rule::LossUntold, detail);
        }
    }

    /// From now on messages arrive, and take at most half of `round_trip`.
    pub fn healed(&self, round_trip: Duration) {
        let mut book = self.book();
        book.round_trip = book.round_trip.max(round_trip);
        book.prompt = true;
    }

    /// Takes what was found and written down.
    pub fn close(&self) -> (Figures, Vec<Violation>, Vec<(Duration, String)>) {
        let mut book = self.book();
        let history = book.history.take().unwrap_or_default();
        (book.figures, std::mem::take(&mut book.violations), history)
    }
}

/// The key of the lock with this number.
pub fn lock_key(number: usize) -> LockKey {
    LockKey::new(format!("lock-{number}"))
}
