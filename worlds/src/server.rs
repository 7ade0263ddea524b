//! The simulated store: lock records behind a clock of their own, and a log of what became of them.

mod cells;
mod entries;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use fencelock::Token;
use fencelock::driver::record::{Record, StepContext, Ticket};
use fencelock::port::limits::TICKET_LIFE;
use fencelock::port::{
    Action, Answer, CellKey, Change as CellSwap, Instant, LockKey, Look, Mode, Notice, Outcome,
    OwnerId, QueueNotice, Runtime, SessionId, Step, Swap,
};
use fencelock_sim::SimNode;

use self::cells::CellTable;

pub use self::cells::CellChange;
pub(crate) use self::entries::Entries;

/// Something that happened to a lock on the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fact {
    /// When, in true time.
    pub at: Duration,
    /// To which lock.
    pub lock: LockKey,
    /// To whose attempt.
    pub owner: OwnerId,
    /// The change to that attempt.
    pub change: Change,
}

/// A change to an attempt on the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// It got a place in the queue.
    Queued {
        /// Its client.
        channel: Arc<str>,
    },
    /// It was granted the lock.
    Granted {
        /// The first token drawn.
        token: Token,
        /// Whether it had waited in the queue.
        queued: bool,
        /// How many it went past: tickets that were there before it and still are.
        passed: usize,
        /// Whether its ticket had ended.
        dead: bool,
    },
    /// Its hold is no more.
    Ended,
    /// Its place in the queue is no more, without a grant.
    Dropped,
    /// A step left the lock free beside this live waiter, the first in the queue.
    Unserved,
}

/// The records and the clock they live by. What it lost in a restart it does not tell.
#[derive(Debug)]
pub struct Server {
    node: Arc<SimNode>,
    world: Arc<SimNode>,
    records: BTreeMap<LockKey, Record>,
    /// Since when it has kept its data.
    born: u64,
    snapshot: BTreeMap<LockKey, Record>,
    cells: CellTable,
    entries: Entries,
    clients: BTreeMap<OwnerId, Arc<str>>,
    facts: Vec<Fact>,
    log: Option<Vec<(Duration, String)>>,
    steps: u64,
}

/// The key of the lock that a run of this job holds.
pub fn job_lock(name: &str) -> LockKey {
    LockKey::new(format!("fencelock:job:{name}"))
}

/// How many one step grants to here: worlds of a hundred show what befalls thousands.
const SERVED_AT_ONCE: usize = 8;

/// The answers of a server, and the notices that it sends to others, each with the client's channel.
pub type Carried = (Vec<Answer>, Vec<(Arc<str>, Notice)>);

impl Server {
    /// An empty store whose clock is `node`'s wall clock.
    pub fn new(node: Arc<SimNode>, world: Arc<SimNode>) -> Self {
        Self {
            node,
            world,
            records: BTreeMap::new(),
            born: 0,
            snapshot: BTreeMap::new(),
            cells: CellTable::default(),
            entries: Entries::default(),
            clients: BTreeMap::new(),
            facts: Vec::new(),
            log: None,
            steps: 0,
        }
    }

    /// Carries a batch out for the client listening on `channel`.
    pub fn carry_out(
        &mut self,
        channel: &Arc<str>,
        batch: &[Step],
        all: bool,
        reachable: &dyn Fn(&str) -> bool,
    ) -> Carried {
        let now = self.node.wall();
        self.records.retain(|_, record| record.forget_after() > now);
        let (born, served_at_once) = (self.born, SERVED_AT_ONCE);
        let mut context =
            StepContext { born, served_at_once, ..StepContext::new(now, channel, reachable) };
        let at = self.world.now().since(Instant::default());
        let mut answers = Vec::with_capacity(batch.len());
        if all {
            let record = |step: &Step| self.records.get(&step.lock).cloned().unwrap_or_default();
            let mut copies: Vec<_> = batch.iter().map(|step| (step, record(step))).collect();
            if let Err(none) = Record::apply_all(&mut copies, &mut context) {
                self.steps += batch.len() as u64;
                return (none.into_iter().map(Ok).collect(), Vec::new());
            }
            // All will be granted: carried out one by one they do the same, and the log sees it.
            context.notices.clear();
        }
        for step in batch {
            self.clients.entry(step.owner).or_insert_with(|| channel.clone());
            let record = self.records.entry(step.lock.clone()).or_default();
            let before = record.clone();
            let told = context.notices.len();
            let outcome = record.apply(step, &mut context);
            if let Some(log) = &mut self.log {
                log.push((at, format!("{channel} {step:?} -> {outcome:?}")));
            }
            let mut log = FactLog { facts: &mut self.facts, at, lock: &step.lock };
            log.compare(&before, record, Some(step.owner), now);
            // An owner id that has a tombstone is refused before anything else is looked at.
            let refused = matches!(step.action, Action::Take(_)) && outcome == Outcome::Gone;
            // A step for another kind than the lock is in use as touches nothing.
            let touched = step.kind == record.kind;
            if !step.action.only_looks() && !refused && touched {
                log.look_for_sleepers(record, now, &context.notices[told..]);
            }
            answers.push(Ok(outcome));
        }
        self.steps += batch.len() as u64;
        (answers, context.notices)
    }

    /// Does something to the entries at this moment. Answers also what is to be told, and in which sessions.
    pub(super) fn act_on_entries<T>(
        &mut self,
        act: impl FnOnce(&mut Entries, Instant) -> T,
    ) -> (T, Vec<(SessionId, QueueNotice)>) {
        let now = self.node.now();
        self.entries.model.expire(now);
        let done = act(&mut self.entries, now);
        let before = std::mem::take(&mut self.records);
        let after = self.entries.records(now);
        let (at, none) = (self.elapsed(), Record::default());
        let locks: BTreeSet<_> = before.keys().chain(after.keys()).collect();
        for lock in locks {
            let mut log = FactLog { facts: &mut self.facts, at, lock };
            let of = |records: &'_ BTreeMap<LockKey, Record>| records.get(lock).cloned();
            let (before, after) = (of(&before), of(&after));
            let now = self.node.wall();
            if let Some(log) = self.log.as_mut().filter(|_| before != after) {
                let shown = after.as_ref().map_or_else(|| "free".to_owned(), entries::shown);
                log.push((at, format!("{} is {shown}", lock.as_str())));
            }
            log.compare(
                before.as_ref().unwrap_or(&none),
                after.as_ref().unwrap_or(&none),
                None,
                now,
            );
        }
        self.records = after;
        (done, self.entries.told())
    }

    fn elapsed(&self) -> Duration {
        self.world.now().since(Instant::default())
    }

    /// Its entries.
    pub(super) fn entries(&self) -> &Entries {
        &self.entries
    }

    /// It has been started once more: what it knows may be older than what it knew.
    pub fn start_anew(&mut self) {
        self.born = self.node.wall();
    }

    /// Remembers the present data for [`Server::restore`].
    pub fn snapshot(&mut self) {
        self.snapshot = self.records.clone();
        self.cells.snapshot();
    }

    /// Goes back to the data of the last snapshot, as a failover to a replica that lags does.
    pub fn restore(&mut self) {
        self.cells.restore();
        let past = self.snapshot.clone();
        self.replace(past);
    }

    /// Loses all data.
    pub fn wipe(&mut self) {
        self.cells.wipe();
        self.replace(BTreeMap::new());
    }

    /// Ends a hold without a word, as a foreign delete of the key does.
    pub fn delete_hold(&mut self, lock: &LockKey) {
        let mut records = self.records.clone();
        if let Some(record) = records.get_mut(lock) {
            record.holders.clear();
        }
        self.replace(records);
    }

    fn replace(&mut self, records: BTreeMap<LockKey, Record>) {
        let at = self.world.now().since(Instant::default());
        for (lock, before) in &self.records {
            let mut log = FactLog { facts: &mut self.facts, at, lock };
            log.endings(before, records.get(lock).unwrap_or(&Record::default()));
        }
        self.records = records;
    }

    /// Writes every step down from now on.
    pub fn keep_log(&mut self) {
        self.log = Some(Vec::new());
    }

    /// The steps written down, each with its time.
    pub fn take_log(&mut self) -> Vec<(Duration, String)> {
        self.log.take().unwrap_or_default()
    }

    /// The client that an attempt belongs to.
    pub fn client_of(&self, owner: OwnerId) -> Option<&Arc<str>> {
        self.clients.get(&owner).or_else(|| self.entries.client_of(owner))
    }

    /// The locks it knows whose key begins with `prefix`.
    pub fn names(&self, prefix: &str) -> Vec<LockKey> {
        self.records.keys().filter(|key| key.as_str().starts_with(prefix)).cloned().collect()
    }

    /// The records that the server keeps, by lock.
    pub fn records(&self) -> &BTreeMap<LockKey, Record> {
        &self.records
    }

    /// The tokens of those who hold this lock now.
    pub fn tokens(&self, lock: &LockKey) -> Vec<u64> {
        let now = self.now();
        let record = self.records.get(lock);
        let holders = record.map(|record| record.holders.as_slice()).unwrap_or_default();
        holders.iter().filter(|holder| now < holder.ends).map(|holder| holder.token).collect()
    }

    /// The cell of this key now.
    pub fn look(&self, key: &CellKey) -> Look {
        self.cells.look(key, self.now())
    }

    /// Changes a cell, or not.
    pub fn swap(&mut self, change: &CellSwap) -> Swap {
        let tokens = self.tokens(&job_lock(&change.key.name));
        self.cells.swap(change, self.node.wall(), self.elapsed(), tokens)
    }

    /// Every change of a cell, in order.
    pub fn cell_changes(&self) -> &[CellChange] {
        self.cells.log()
    }

    /// Its clock.
    pub fn now(&self) -> u64 {
        self.node.wall()
    }

    /// Everything that happened, in order.
    pub fn facts(&self) -> &[Fact] {
        &self.facts
    }

    /// How many steps it has carried out.
    pub fn steps(&self) -> u64 {
        self.steps
    }
}

/// Writes down how one lock's record changes.
struct FactLog<'a> {
    facts: &'a mut Vec<Fact>,
    at: Duration,
    lock: &'a LockKey,
}

impl FactLog<'_> {
    fn note(&mut self, owner: OwnerId, change: Change) {
        self.facts.push(Fact { at: self.at, lock: self.lock.clone(), owner, change });
    }

    fn endings(&mut self, before: &Record, after: &Record) {
        for holder in &before.holders {
            if !holds(after, holder.owner) {
                self.note(holder.owner, Change::Ended);
            }
        }
        for ticket in &before.tickets {
            let granted = holds(after, ticket.owner);
            if !granted && place(after, ticket.owner).is_none() {
                self.note(ticket.owner, Change::Dropped);
            }
        }
    }

    fn compare(&mut self, before: &Record, after: &Record, caller: Option<OwnerId>, now: u64) {
        self.endings(before, after);
        for ticket in &after.tickets {
            if place(before, ticket.owner).is_none() {
                self.note(ticket.owner, Change::Queued { channel: ticket.channel.clone() });
            }
        }
        let drawn = |record: &Record, owner, token| {
            record.holders.iter().any(|held| (held.owner, held.token) == (owner, token))
        };
        for holder in &after.holders {
            let (owner, token) = (holder.owner, holder.token);
            if drawn(before, owner, token) {
                continue;
            }
            let was = place(before, owner);
            let ahead = was.unwrap_or(before.tickets.len());
            let earlier = before.tickets.iter().take(ahead);
            let passed = earlier.filter(|ticket| place(after, ticket.owner).is_some()).count();
            // One that asks itself is alive, whatever its ticket says.
            let dead = was
                .is_some_and(|place| Some(owner) != caller && !lives(&before.tickets[place], now));
            let (token, queued) = (Token::new(token), was.is_some());
            self.note(owner, Change::Granted { token, queued, passed, dead });
        }
    }

    /// A waiter that could hold is granted to, or told to ask where one step has granted to enough.
    fn look_for_sleepers(&mut self, record: &Record, now: u64, told: &[(Arc<str>, Notice)]) {
        let waiter = record.tickets.iter().find(|ticket| lives(ticket, now));
        let waiter = waiter.filter(|waiter| {
            let asks = |(_, notice): &(_, Notice)| *notice == Notice::Open { owner: waiter.owner };
            !told.iter().any(asks)
        });
        if record.open_since.is_none()
            && let Some(waiter) = waiter.filter(|waiter| could_hold(record, waiter))
        {
            self.note(waiter.owner, Change::Unserved);
        }
    }
}

fn holds(record: &Record, owner: OwnerId) -> bool {
    record.holders.iter().any(|holder| holder.owner == owner)
}

/// Whether a waiter could certainly hold beside those who do.
fn could_hold(record: &Record, waiter: &Ticket) -> bool {
    match waiter.mode {
        Mode::Permit => {
            let held: u32 = record.holders.iter().map(|held| held.permits).sum();
            held + waiter.permits <= waiter.limit
        }
        Mode::Read => record.holders.iter().all(|held| held.mode == Mode::Read),
        _ => record.holders.is_empty(),
    }
}

fn place(record: &Record, owner: OwnerId) -> Option<usize> {
    record.tickets.iter().position(|ticket| ticket.owner == owner)
}

/// Whether a ticket counts: it was refreshed not too long ago.
pub(super) fn lives(ticket: &Ticket, now: u64) -> bool {
    now < ticket.refreshed + TICKET_LIFE.as_micros() as u64
}
