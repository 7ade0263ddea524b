//! Watches such a world: who believes to run or to lead, and what became of every operation.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fencelock::port::{Family as Cells, Version};
use fencelock::{Claim, Error, Leader, Token};

use super::actor::name;
use super::history::{self, Record};
use super::plan::{Family, Plan};
use super::shelf::lock_of_job;
use crate::checker::{Figures, Rule, Violation};
use crate::network::Network;

/// The outcome of an operation as far as its caller knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// It was carried out, and made this version.
    Done(u64),
    /// It was not.
    NotDone,
    /// Nobody can tell, or nobody asked any more.
    Unknown,
}

/// Somebody who believes to run or to lead.
struct Live {
    client: usize,
    of: usize,
    claim: Claim,
    since: Duration,
}

/// Counts for as long as it is there.
pub(super) struct Note {
    checker: Arc<Checker>,
    client: usize,
    number: u64,
}

#[derive(Default)]
struct Book {
    numbers: u64,
    fates: BTreeMap<u64, Option<Fate>>,
    deletions: Vec<(usize, u64)>,
    live: BTreeMap<u64, Live>,
    /// How much each client is busy with.
    busy: Vec<usize>,
    crashed: Vec<bool>,
    newest: BTreeMap<(usize, Option<usize>), Token>,
    /// The instants that were run, each with the token.
    runs: BTreeMap<(usize, Duration), Token>,
    /// Whom the observer was told of last.
    seen: BTreeMap<usize, Option<Token>>,
    read: usize,
    figures: Figures,
    violations: Vec<Violation>,
    history: Option<Vec<(Duration, String)>>,
}

/// Watches one world.
pub(super) struct Checker {
    plan: Arc<Plan>,
    network: Network,
    book: Mutex<Book>,
}

impl Checker {
    pub(super) fn new(plan: &Arc<Plan>, network: &Network, traced: bool) -> Arc<Self> {
        let clients = plan.clients.len();
        let book = Book {
            busy: vec![0; clients],
            crashed: vec![false; clients],
            history: traced.then(Vec::new),
            ..Book::default()
        };
        Arc::new(Self { plan: plan.clone(), network: network.clone(), book: Mutex::new(book) })
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn tell(&self, line: impl FnOnce() -> String) {
        let at = self.network.elapsed();
        if let Some(history) = &mut self.book().history {
            history.push((at, line()));
        }
    }

    pub(super) fn violated(&self, rule: Rule, detail: String) {
        let at = self.network.elapsed();
        self.book().violations.push(Violation { at, rule, detail });
    }

    /// An operation begins; its number stands in what it writes.
    pub(super) fn begins(&self) -> u64 {
        let mut book = self.book();
        book.numbers += 1;
        let number = book.numbers;
        book.fates.insert(number, None);
        number
    }

    pub(super) fn ends(&self, by: u64, fate: Fate) {
        self.tell(|| format!("operation {by}: {fate:?}"));
        let mut book = self.book();
        book.figures.grants += u64::from(matches!(fate, Fate::Done(_)));
        book.figures.cancels += u64::from(fate == Fate::Unknown);
        book.figures.refusals += u64::from(fate == Fate::NotDone);
        book.fates.insert(by, Some(fate));
    }

    pub(super) fn deleted(&self, of: usize, version: Version) {
        self.book().deletions.push((of, version.get()));
    }

    pub(super) fn wrong_error(&self, error: &Error) {
        self.violated(Rule::WrongError, error.to_string());
    }

    /// Somebody lost what it ran or led.
    pub(super) fn lost(&self, client: usize) {
        self.book().figures.losses += 1;
        if !self.plan.calm() {
            return;
        }
        // A run may be lost where it took longer than it may.
        if self.plan.job.at_most.is_none() || self.plan.family == Family::Elections {
            self.violated(
                Rule::FalselyLost,
                format!("client {client} lost what nothing could take"),
            );
        }
    }

    /// A client asks for something; until the note is dropped it does.
    pub(super) fn asks(self: &Arc<Self>, client: usize) -> Note {
        let mut book = self.book();
        book.busy[client] += 1;
        book.numbers += 1;
        Note { checker: self.clone(), client, number: book.numbers }
    }

    /// Whether a client has nothing to do.
    pub(super) fn rests(&self, client: usize) -> bool {
        let book = self.book();
        book.busy[client] == 0 && !book.crashed[client]
    }

    pub(super) fn crashed(&self, client: usize) {
        self.book().crashed[client] = true;
        // Its machine answers no more: what it believes does no harm.
        self.book().live.retain(|_, live| live.client != client);
    }

    /// A run has begun.
    pub(super) fn begun(
        self: &Arc<Self>,
        client: usize,
        of: usize,
        claim: &Claim,
        instant: Duration,
    ) -> Note {
        self.tell(|| format!("client {client} runs job {of} for {instant:?}: {}", claim.token()));
        let job = &self.plan.job;
        let before = self.book().runs.insert((of, instant), claim.token());
        if let Some(before) = before.filter(|_| self.plan.faithful() && !job.retry_dead) {
            self.violated(Rule::RunTwice, format!("{instant:?}: {before} and {}", claim.token()));
        }
        if !job.named && !instant.as_micros().is_multiple_of(job.period.as_micros()) {
            self.violated(Rule::RunTwice, format!("{instant:?} is no multiple of the period"));
        }
        let clock = Duration::from_micros(self.network.store(|store| store.now()));
        // Also after everything has healed, when one way takes up to a millisecond.
        let slack = self.plan.weather.round_trip() * 3 + Duration::from_millis(6);
        let (early, late) = (job.early(), job.period.saturating_sub(job.early()) + slack);
        let due = instant <= clock + early && clock <= instant + late;
        if self.plan.calm() && !job.named && !due {
            self.violated(Rule::RunTwice, format!("{instant:?} is not what is due at {clock:?}"));
        }
        self.holds(client, of, claim)
    }

    /// A leader was elected.
    pub(super) fn leads(self: &Arc<Self>, client: usize, of: usize, claim: &Claim) -> Note {
        self.tell(|| format!("client {client} leads {of}: {}", claim.token()));
        self.holds(client, of, claim)
    }

    fn holds(self: &Arc<Self>, client: usize, of: usize, claim: &Claim) -> Note {
        let note = self.asks(client);
        let token = claim.token();
        let mut book = self.book();
        book.figures.grants += 1;
        if claim.is_held() && !self.plan.forgets() {
            let whose = (!self.plan.faithful()).then_some(client);
            let newest = book.newest.insert((of, whose), token).unwrap_or_default();
            if token <= newest {
                drop(book);
                self.violated(Rule::TokenFell, format!("{token} after {newest}"));
                book = self.book();
            }
        }
        let since = self.network.elapsed();
        book.live.insert(note.number, Live { client, of, claim: claim.clone(), since });
        drop(book);
        self.audit();
        note
    }

    /// Records the leader that the observer of an election sees.
    pub(super) fn sees(&self, of: usize, leader: Option<&Leader>) {
        let token = leader.and_then(|leader| leader.token);
        self.tell(|| format!("the observer of {of} sees {token:?}"));
        self.book().seen.insert(of, token);
    }

    /// Looks at everything.
    pub(super) fn audit(&self) {
        let found = self.found();
        for (rule, detail) in found {
            self.violated(rule, detail);
        }
        let mut book = self.book();
        let from = book.read;
        let (changes, violations) = self.network.store(|store| {
            let diary = store.cells().diary();
            (diary.len(), history::check(&self.plan, diary, from))
        });
        book.read = changes;
        book.violations.extend(violations);
    }

    fn found(&self) -> Vec<(Rule, String)> {
        let mut found = Vec::new();
        let book = self.book();
        let held: Vec<&Live> = book.live.values().filter(|live| live.claim.is_held()).collect();
        for (at, one) in held.iter().enumerate() {
            let token = one.claim.token();
            if !self.plan.faithful() {
                continue;
            }
            if let Some(other) = held[at + 1..].iter().find(|other| other.of == one.of) {
                let detail = format!("{token} and {} of {}", other.claim.token(), one.of);
                found.push((Rule::Overlap, detail));
            }
            if self.plan.family == Family::Jobs && !self.backed(one) {
                found.push((Rule::Unbacked, format!("client {} runs with {token}", one.client)));
            }
            let observed = self.plan.ttl / 2 + self.plan.weather.round_trip() * 2;
            let settled = one.since + observed.max(Duration::from_millis(10)) * 2;
            let told = book.seen.get(&one.of).copied().flatten();
            if self.plan.calm()
                && self.plan.family == Family::Elections
                && self.network.elapsed() > settled
                && told != Some(token)
            {
                let detail = format!("{token} leads {}, {told:?} was told", one.of);
                found.push((Rule::Unseen, detail));
            }
        }
        found
    }

    /// Whether the store keeps the run that is believed in.
    fn backed(&self, live: &Live) -> bool {
        let (record, tokens) = self.run_of(live.of);
        record
            .is_some_and(|record| record.token == live.claim.token().get() && record.alive(&tokens))
    }

    /// The last run of a job as it lies on the store, and the tokens of those who hold its lock.
    fn run_of(&self, of: usize) -> (Option<Record>, Vec<u64>) {
        let key = fencelock::port::CellKey::new(Cells::Job, name(of));
        self.network.store(|store| {
            let now = store.now();
            let look = store.cells().look(&key, now);
            (Record::of(look.cell.as_ref()), store.tokens(&lock_of_job(&key.name)))
        })
    }

    /// The end of the world: what every operation was told is what happened.
    pub(super) fn take_stock(&self) {
        self.audit();
        let found = self.network.store(|store| {
            let book = self.book();
            history::fates(&self.plan, store.cells().diary(), &book.fates, &book.deletions)
        });
        self.book().violations.extend(found);
        if self.plan.family != Family::Jobs || self.plan.mood == super::plan::Mood::Jumped {
            return;
        }
        for of in 0..2 {
            let (record, tokens) = self.run_of(of);
            if !tokens.is_empty() {
                self.violated(Rule::Stuck, format!("a run of job {of} never ends"));
            }
            // One that took longer than it may is left as it was.
            let calm = self.plan.calm() && self.plan.job.at_most.is_none();
            if calm && record.is_some_and(|record| record.status == "P") {
                self.violated(Rule::Ghost, format!("a run of job {of} is left that nobody has"));
            }
        }
    }

    pub(super) fn close(&self) -> (Figures, Vec<Violation>, Vec<(Duration, String)>) {
        let mut book = self.book();
        let history = book.history.take().unwrap_or_default();
        (book.figures, std::mem::take(&mut book.violations), history)
    }
}

impl Drop for Note {
    fn drop(&mut self) {
        let mut book = self.checker.book();
        book.live.remove(&self.number);
        book.busy[self.client] -= 1;
    }
}
