//! Values, runs and leaders: whether every change on the store was allowed, and whether every caller was told what happened.

use std::collections::BTreeMap;
use std::time::Duration;

use fencelock::port::{Cell, CellKey, Family, Runtime, Version};
use fencelock::{Error, Leader, Token};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::state::State;
use super::{Checker, Rule};
use crate::plan::{Subject, name};
use crate::server::{CellChange, job_lock};

/// A value: how often it was added to, and by which of all operations last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// How often.
    pub count: u64,
    /// By which operation.
    pub by: u64,
}

/// The outcome of an operation as far as its caller knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It was carried out, and made this version.
    Done(u64),
    /// It was not.
    NotDone,
    /// Nobody can tell, or nobody asked any more.
    Unknown,
}

/// What the checker keeps of the cells of a world.
#[derive(Debug, Default)]
pub(super) struct Operations {
    fates: BTreeMap<u64, Option<Fate>>,
    deletions: Vec<(usize, u64)>,
    /// The instants that were run, each with the token.
    runs: BTreeMap<(usize, Duration), Token>,
    /// The leader that the observer was told of last.
    seen: BTreeMap<usize, Option<Token>>,
    changes_read: usize,
}

/// A run as it lies in its cell.
struct RunRecord {
    status: String,
    instant: u64,
    token: u64,
    /// Whether it says itself when it started, which only the start does not.
    told: bool,
    started: u64,
    at_least: u64,
}

impl RunRecord {
    fn of(cell: Option<&Cell>) -> Option<Self> {
        let cell = cell?;
        let value: Value = serde_json::from_str(cell.value.as_deref()?).ok()?;
        let number = |name: &str| value[name].as_u64();
        Some(Self {
            status: value["status"].as_str()?.to_owned(),
            instant: number("instant")?,
            token: number("token")?,
            told: number("started").is_some(),
            started: number("started").unwrap_or(cell.since),
            at_least: number("at_least").unwrap_or(0),
        })
    }

    /// Whether it is in progress, and not dead: these tokens hold the job's lock.
    fn is_alive(&self, tokens: &[u64]) -> bool {
        self.status == "P" && tokens.contains(&self.token)
    }
}

fn entry(cell: Option<&Cell>) -> Option<Entry> {
    serde_json::from_str(cell?.value.as_deref()?).ok()
}

impl Checker {
    /// An operation begins; its number stands in what it writes.
    pub fn begins(&self) -> u64 {
        let mut state = self.state();
        state.numbers += 1;
        let number = state.numbers;
        state.operations.fates.insert(number, None);
        number
    }

    /// How an operation ended.
    pub fn ends(&self, by: u64, fate: Fate) {
        self.tell(|| format!("operation {by}: {fate:?}"));
        let mut state = self.state();
        state.figures.grants += u64::from(matches!(fate, Fate::Done(_)));
        state.figures.cancels += u64::from(fate == Fate::Unknown);
        state.figures.refusals += u64::from(fate == Fate::NotDone);
        state.operations.fates.insert(by, Some(fate));
    }

    /// A value was deleted, which made this version.
    pub fn deleted(&self, value: usize, version: Version) {
        self.state().operations.deletions.push((value, version.get()));
    }

    /// An error was told that nothing explains.
    pub fn wrong_error(&self, error: &Error) {
        self.violated(Rule::WrongError, error.to_string());
    }

    /// A run has begun.
    pub fn begun(&self, job: usize, instant: Duration, token: Token) {
        let plan = &self.plan;
        let before = self.state().operations.runs.insert((job, instant), token);
        if let Some(before) = before.filter(|_| plan.faithful() && !plan.job.retry_dead) {
            self.violated(Rule::RunTwice, format!("{instant:?}: {before} and {token}"));
        }
        if plan.job.named {
            return;
        }
        let period = plan.job.period;
        if !instant.as_micros().is_multiple_of(period.as_micros()) {
            self.violated(Rule::RunTwice, format!("{instant:?} is no multiple of the period"));
        }
        let clock = Duration::from_micros(self.stores.first().store(|store| store.now()));
        // Also after everything has healed, when one way takes up to a millisecond.
        let slack = plan.conditions.round_trip() * 3 + Duration::from_millis(6);
        let (early, late) = (plan.job.early(), period.saturating_sub(plan.job.early()) + slack);
        if plan.calm() && !(instant <= clock + early && clock <= instant + late) {
            self.violated(Rule::RunTwice, format!("{instant:?} is not what is due at {clock:?}"));
        }
    }

    /// The observer of an election is told who leads.
    pub fn sees(&self, election: usize, leader: Option<&Leader>) {
        let token = leader.and_then(|leader| leader.token);
        self.tell(|| format!("the observer of {election} sees {token:?}"));
        self.state().operations.seen.insert(election, token);
    }

    /// Looks at what has changed, and at those who believe to run or to lead.
    pub(super) fn look_at_cells(&self, state: &mut State, now: Duration) {
        let network = self.stores.first();
        let read = state.operations.changes_read;
        let changes = network.store(|store| match store.cell_changes() {
            all if all.len() > read => all.to_vec(),
            _ => Vec::new(),
        });
        for (at, change) in changes.iter().enumerate().skip(read) {
            self.judge_change(state, &changes[..at], change);
        }
        state.operations.changes_read = read.max(changes.len());
        let mut found = Vec::new();
        for live in state.live.values().filter(|live| live.claim.is_held()) {
            let (lock, token) = (live.lock, live.claim.token());
            if self.plan.subject == Subject::Jobs && self.rules.faithful() {
                let (record, tokens) = self.run_of(lock);
                let own = record.filter(|run| run.token == token.get() && run.is_alive(&tokens));
                if own.is_none() {
                    found.push((
                        Rule::Unbacked,
                        format!("client {} runs with {token}", live.client),
                    ));
                }
            }
            let observed = self.plan.observes() + self.plan.conditions.round_trip() * 2;
            let led_for = state.clients[live.client].node.now().since(live.since);
            let told = state.operations.seen.get(&lock).copied().flatten();
            let settled = self.rules.calm() && led_for > observed * 2;
            if self.plan.subject == Subject::Elections && settled && told != Some(token) {
                found.push((Rule::Unseen, format!("{token} leads {lock}, {told:?} was told")));
            }
        }
        for (rule, detail) in found {
            state.violated(now, rule, detail);
        }
    }

    fn judge_change(&self, state: &mut State, earlier: &[CellChange], change: &CellChange) {
        let mut broken = |rule, detail| {
            state.violated(change.at, rule, format!("{} {detail}: {change:?}", change.key.name));
        };
        let last = earlier.iter().rev().find(|earlier| earlier.key == change.key);
        if last.is_some_and(|last| last.version >= change.version) && !self.rules.forgets_tokens {
            broken(Rule::WrongVersion, "does not rise");
        }
        if change.key.family == Family::Version {
            let before = entry(change.before.as_ref()).map_or(0, |entry| entry.count);
            if entry(change.after.as_ref()).is_some_and(|entry| entry.count != before + 1) {
                broken(Rule::WrongVersion, "was made of another value than was there");
            }
            return;
        }
        let after = RunRecord::of(change.after.as_ref());
        let Some(start) = after.filter(|after| !after.told) else {
            let mark = change.before.as_ref().and_then(|cell| cell.trail.first());
            if mark.is_none_or(|mark| mark.writer != change.writer) {
                broken(Rule::WrongHand, "was changed by another than its run");
            }
            return;
        };
        let Some(last) = RunRecord::of(change.before.as_ref()) else { return };
        if last.is_alive(&change.tokens) {
            broken(Rule::Overlap, "started while its last run was alive");
        }
        let again = start.instant == last.instant && last.status == "P" && self.plan.job.retry_dead;
        if start.instant <= last.instant && !again {
            broken(Rule::RunTwice, "started for an instant that was run");
        }
        // A run that died is made up for as soon as somebody asks.
        let half = if again { 0 } else { self.plan.job.period.as_micros() as u64 / 2 };
        // What the asker saw of the clock need not be what it shows now.
        let soon = change.clock < last.started.saturating_add(last.at_least.max(half));
        if soon && !self.plan.jumps() {
            broken(Rule::RunTwice, "started too soon after its last run");
        }
    }

    /// The last run of a job as it lies on the store, and the tokens of those who hold its lock.
    fn run_of(&self, job: usize) -> (Option<RunRecord>, Vec<u64>) {
        let key = CellKey::new(Family::Job, name(job));
        self.stores.first().store(|store| {
            (RunRecord::of(store.look(&key).cell.as_ref()), store.tokens(&job_lock(&key.name)))
        })
    }

    /// The end of the world: what every operation was told is what happened, and no run is left that nobody has.
    pub(super) fn look_at_fates(&self, state: &mut State, now: Duration) {
        let changes: Vec<CellChange> =
            self.stores.first().store(|store| store.cell_changes().to_vec());
        let mut made: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
        for change in &changes {
            if let Some(entry) = entry(change.after.as_ref()) {
                made.entry(entry.by).or_default().push(change.version);
            }
        }
        let mut found = Vec::new();
        for (by, fate) in &state.operations.fates {
            let made = made.get(by).map(Vec::as_slice).unwrap_or_default();
            let fits = !matches!(fate, Some(Fate::Done(version)) if !made.contains(version));
            // Where the store falls back to older data, a late copy may be carried out once more.
            let exact = match fate {
                Some(Fate::Done(_)) => made.len() == 1,
                Some(Fate::NotDone) => made.is_empty(),
                Some(Fate::Unknown) | None => made.len() <= 1,
            };
            if !fits || (self.rules.faithful() && !exact) {
                found.push(format!("operation {by} was told {fate:?}, and made {made:?}"));
            }
        }
        for (value, version) in &state.operations.deletions {
            let is = |change: &&CellChange| {
                *change.key.name == *name(*value) && change.version == *version
            };
            let gone =
                |change: &CellChange| change.after.as_ref().is_none_or(|cell| cell.value.is_none());
            if !changes.iter().find(is).is_some_and(gone) {
                found.push(format!("the deletion {version} of {value} never was"));
            }
        }
        for detail in found {
            state.violated(now, Rule::WrongFate, detail);
        }
        for job in (0..2).filter(|_| self.plan.subject == Subject::Jobs && self.rules.calm()) {
            if self.run_of(job).0.is_some_and(|run| run.status == "P") {
                state.violated(
                    now,
                    Rule::Ghost,
                    format!("a run of job {job} is left that nobody has"),
                );
            }
        }
    }
}
