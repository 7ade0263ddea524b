//! Checks the store's record of all changes to cells: whether every change was allowed.

use std::collections::BTreeMap;

use fencelock::port::{Cell, Family as Cells};
use serde_json::Value;

use super::actor::{Entry, name};
use super::checker::Fate;
use super::plan::{Mood, Plan};
use super::shelf::Changed;
use crate::checker::{Rule, Violation};

/// A run as it lies in its cell.
pub(super) struct Record {
    pub status: String,
    pub instant: u64,
    pub token: u64,
    /// Whether it says itself when it started, which only the start does not.
    told: bool,
    started: u64,
    at_least: u64,
}

impl Record {
    pub(super) fn of(cell: Option<&Cell>) -> Option<Self> {
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
    pub(super) fn alive(&self, tokens: &[u64]) -> bool {
        self.status == "P" && tokens.contains(&self.token)
    }
}

/// Looks at the changes from this place on.
pub(super) fn check(plan: &Plan, diary: &[Changed], from: usize) -> Vec<Violation> {
    let mut found = Vec::new();
    for (at, change) in diary.iter().enumerate().skip(from) {
        let mut broken = |rule, detail| {
            let detail = format!("{} {detail}: {change:?}", change.key.name);
            found.push(Violation { at: change.at, rule, detail });
        };
        let earlier = diary[..at].iter().rev().find(|earlier| earlier.key == change.key);
        if earlier.is_some_and(|earlier| earlier.version >= change.version) && !plan.forgets() {
            broken(Rule::WrongVersion, "does not rise");
        }
        match change.key.family {
            Cells::Version => {
                if let Some(entry) = entry(change.after.as_ref())
                    && entry.count != 1 + self::entry(change.before.as_ref()).map_or(0, |e| e.count)
                {
                    broken(Rule::WrongVersion, "was made of another value than was there");
                }
            }
            Cells::Job => check_run(plan, change, &mut broken),
        }
    }
    found
}

fn check_run(plan: &Plan, change: &Changed, broken: &mut impl FnMut(Rule, &'static str)) {
    let after = Record::of(change.after.as_ref());
    let before = Record::of(change.before.as_ref());
    let Some(start) = after.filter(|after| !after.told) else {
        let mark = change.before.as_ref().and_then(|cell| cell.trail.first());
        if mark.is_none_or(|mark| mark.writer != change.writer) {
            broken(Rule::WrongHand, "was changed by another than its run");
        }
        return;
    };
    let Some(last) = before else { return };
    if last.alive(&change.tokens) {
        broken(Rule::Overlap, "started while its last run was alive");
    }
    let again = start.instant == last.instant && last.status == "P" && plan.job.retry_dead;
    if start.instant <= last.instant && !again {
        broken(Rule::RunTwice, "started for an instant that was run");
    }
    // A run that died is made up for as soon as somebody asks.
    let half = if again { 0 } else { plan.job.period.as_micros() as u64 / 2 };
    // What the asker saw of the clock need not be what it shows now.
    let steady = plan.mood != Mood::Jumped;
    if steady && change.clock < last.started.saturating_add(last.at_least.max(half)) {
        broken(Rule::RunTwice, "started too soon after its last run");
    }
}

fn entry(cell: Option<&Cell>) -> Option<Entry> {
    serde_json::from_str(cell?.value.as_deref()?).ok()
}

/// Whether what every operation was told is what happened.
pub(super) fn fates(
    plan: &Plan,
    diary: &[Changed],
    fates: &BTreeMap<u64, Option<Fate>>,
    deletions: &[(usize, u64)],
) -> Vec<Violation> {
    let mut found = Vec::new();
    let at = diary.last().map(|change| change.at).unwrap_or_default();
    let mut broken = |detail| found.push(Violation { at, rule: Rule::WrongFate, detail });
    let mut made: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    for change in diary {
        if let Some(entry) = entry(change.after.as_ref()) {
            made.entry(entry.by).or_default().push(change.version);
        }
    }
    for (by, fate) in fates {
        let made = made.get(by).map(Vec::as_slice).unwrap_or_default();
        let fits = match fate {
            Some(Fate::Done(version)) => made.contains(version),
            _ => true,
        };
        // Where the store falls back to older data, a late copy may be carried out once more.
        let exact = match fate {
            Some(Fate::Done(_)) => made.len() == 1,
            Some(Fate::NotDone) => made.is_empty(),
            Some(Fate::Unknown) | None => made.len() <= 1,
        };
        if !fits || (plan.faithful() && !exact) {
            broken(format!("operation {by} was told {fate:?}, and made {made:?}"));
        }
    }
    for (of, version) in deletions {
        let is = |change: &&Changed| *change.key.name == *name(*of) && change.version == *version;
        if diary
            .iter()
            .find(is)
            .is_none_or(|change| change.after.as_ref().is_some_and(|cell| cell.value.is_some()))
        {
            broken(format!("the deletion {version} of {of} never was"));
        }
    }
    found
}
