//! A case as it stands in `tests/cases/*.yaml`. The README of the tests tells what every step does.

use std::collections::BTreeSet;
use std::path::Path;

use fencelock::port::Mode;
use serde::Deserialize;

use super::leases;
use super::step::{Connect, Expect, Step};
use crate::protocol::Options;

/// One promise, as steps and what they must show.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// The property that it shows, as a sentence.
    pub name: String,
    /// Scenarios and invariants it stands for, `B05` or `H2` for instance.
    #[serde(default)]
    pub why: Vec<String>,
    /// The abilities that a cell must offer beyond locks.
    #[serde(default)]
    pub needs: BTreeSet<Need>,
    /// Whether it is also played where Redis is reached in another way: over TLS, by the older protocol, as a cluster.
    #[serde(default)]
    pub anywhere: bool,
    /// Whether every package plays it on Redis, and Rust on every server, also without `--full`.
    #[serde(default)]
    pub basic: bool,
    /// Every actor is one client.
    pub actors: Vec<String>,
    /// Clients of another library, which hold the same locks in their own way.
    #[serde(default)]
    pub incumbents: Vec<String>,
    /// Options every actor connects with.
    #[serde(default)]
    pub options: Options,
    /// Whether the actors are connected when the steps begin.
    #[serde(default = "yes")]
    pub connected: bool,
    /// The steps, in order.
    pub steps: Vec<Step>,
}

/// A case that sleeps for so many milliseconds is long.
const LONG: u64 = 3000;

fn sleeps(steps: &[Step]) -> u64 {
    let each = steps.iter().map(|step| match step {
        Step::Sleep(time) => *time,
        Step::Repeat(times) => times.times as u64 * sleeps(&times.steps),
        Step::Parallel(times) => sleeps(&times.steps),
        _ => 0,
    });
    each.sum()
}

fn yes() -> bool {
    true
}

/// The abilities that not every backend or transport offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub enum Need {
    /// Others than fencelock hold locks on the store, and the engine can write to it as one of them.
    #[serde(rename = "foreign_holders")]
    ForeignHolders,
    /// The dialect `plain:<prefix>`.
    #[serde(rename = "dialect:plain")]
    DialectPlain,
    /// Actors can be killed and stopped one by one.
    #[serde(rename = "kill")]
    Kill,
    /// A server of the case's own, to be emptied and restarted.
    #[serde(rename = "server_control")]
    ServerControl,
    /// A server that knows nothing any more when it is started again.
    #[serde(rename = "forgets")]
    Forgets,
    /// A store without dialects.
    #[serde(rename = "no_dialects")]
    NoDialects,
    /// A store in a file.
    #[serde(rename = "files")]
    Files,
    /// Bounds that a machine which stalls would rightly miss.
    #[serde(rename = "virtual_time")]
    VirtualTime,
    /// Clients in several places see the same store. Every case with two actors needs it.
    #[serde(rename = "shared_store")]
    SharedStore,
    /// An operation under way can be given up from outside. Every case with an `abort` needs it.
    #[serde(rename = "abort")]
    Abort,
    /// Words are sent as they are, also those that a typed interface has no place for.
    #[serde(rename = "untyped")]
    Untyped,
    /// Jobs by the calendar.
    #[serde(rename = "cron")]
    Cron,
    /// The package itself connects to what a URL names.
    #[serde(rename = "urls")]
    Urls,
    /// Without fairness others go past those who wait.
    #[serde(rename = "passing")]
    Passing,
    /// The store's URL carries options. Every case that connects by such a URL needs it.
    #[serde(rename = "url_options")]
    UrlOptions,
    /// Each lock has a lease of its own length, also when its client has died. Every case that relies on it needs it.
    #[serde(rename = "own_leases")]
    OwnLeases,
    /// A client's lease may end between two seconds. Every case in which one does needs it.
    #[serde(rename = "part_seconds")]
    PartSeconds,
    /// The store keeps versions and jobs. Every case with one needs it.
    #[serde(rename = "cells")]
    Cells,
    /// The store is a server that asks who its clients are. Every case with a `reach` needs it.
    #[serde(rename = "credentials")]
    Credentials,
    /// Somebody else can take a lock away on the store. Every case in which that happens needs it.
    #[serde(rename = "taking_away")]
    TakingAway,
    /// The engine speaks with the server by commands of Redis. Every case that does so needs it.
    #[serde(rename = "commands")]
    Commands,
    /// A version can lie in a table of the user's own. Every case that makes one needs it.
    #[serde(rename = "own_tables")]
    OwnTables,
    /// All holds and requests of one actor go through one client.
    #[serde(rename = "one_client")]
    OneClient,
    /// A holder of the lock goes on until its lease has ended.
    #[serde(rename = "whole_lease")]
    WholeLease,
    /// Waiters of different clients are served in the order in which they came.
    #[serde(rename = "order")]
    Order,
    /// A waiter keeps its place, however long it waits.
    #[serde(rename = "places")]
    Places,
    /// A request that comes just as a lock becomes free is not granted before those who wait.
    #[serde(rename = "tries_in_order")]
    TriesInOrder,
    /// Locks that several hold by permits. Every case that asks for one needs it.
    #[serde(rename = "permits")]
    Permits,
    /// Locks that readers share. Every case that asks for one needs it.
    #[serde(rename = "readers")]
    Readers,
    /// The store can list the names of its locks. Every case that asks for them needs it.
    #[serde(rename = "names")]
    Names,
    /// The store tells who holds a lock. Every case needs it that asks for more than whether somebody does.
    #[serde(rename = "details")]
    Details,
    /// A gate stands on the store. Every case that writes through one needs it.
    #[serde(rename = "gates")]
    Gates,
    /// A client can wait for hundreds of locks at once, or read one by a hundred guards.
    #[serde(rename = "many_waits")]
    ManyWaits,
    /// The other library can make a lease longer.
    #[serde(rename = "extends")]
    Extends,
    /// The other library renews by itself what it holds.
    #[serde(rename = "renews")]
    Renews,
    /// Waiters of the other library look again by themselves, also when nobody tells them.
    #[serde(rename = "looks_again")]
    LooksAgain,
    /// The other library says whether what it releases was still its own.
    #[serde(rename = "tells_loss")]
    TellsLoss,
    /// The other library has fair and read-write locks and semaphores besides.
    #[serde(rename = "kinds")]
    Kinds,
}

impl Case {
    /// All that a cell must offer, also what follows from the number of actors.
    pub fn needs(&self) -> BTreeSet<Need> {
        let mut needs = self.needs.clone();
        if self.actors.len() > 1 {
            needs.insert(Need::SharedStore);
        }
        if any(&self.steps, |step| matches!(step, Step::Abort(_))) {
            needs.insert(Need::Abort);
        }
        if any(&self.steps, asks_for_permit) {
            needs.insert(Need::Permits);
        }
        if any(&self.steps, shares) {
            needs.insert(Need::Readers);
        }
        if any(&self.steps, |step| matches!(step, Step::Names(_))) {
            needs.insert(Need::Names);
        }
        if any(&self.steps, |step| asks_who(step) || matches!(step, Step::Break(_))) {
            needs.insert(Need::Details);
        }
        if any(&self.steps, |step| matches!(step, Step::Gate(_))) {
            needs.insert(Need::Gates);
        }
        if any(&self.steps, has_options_in_url) {
            needs.insert(Need::UrlOptions);
        }
        if leases::are_own(self) {
            needs.insert(Need::OwnLeases);
        }
        if leases::have_part_seconds(self) {
            needs.insert(Need::PartSeconds);
        }
        if any(&self.steps, is_about_cells) {
            needs.insert(Need::Cells);
        }
        if any(&self.steps, |step| matches!(step, Step::Reach(_))) {
            needs.insert(Need::Credentials);
        }
        if any(&self.steps, |step| matches!(step, Step::TakeAway(_))) {
            needs.insert(Need::TakingAway);
        }
        if any(&self.steps, |step| matches!(step, Step::Sql(_))) {
            needs.insert(Need::OwnTables);
        }
        if any(&self.steps, speaks_redis) {
            needs.insert(Need::Commands);
        }
        needs
    }

    /// Whether it kills or stops something, burdens the machine, or sleeps for seconds.
    pub(super) fn is_long(&self) -> bool {
        let heavy = [Need::Kill, Need::ServerControl, Need::Forgets, Need::ManyWaits];
        let needs = self.needs();
        heavy.iter().any(|need| needs.contains(need)) || sleeps(&self.steps) >= LONG
    }

    /// Its name, with the scenarios it stands for.
    pub(super) fn title(&self) -> String {
        let scenarios = self.why.iter().filter(|why| why.starts_with('B'));
        let numbers: Vec<_> = scenarios.map(String::as_str).collect();
        let name = &self.name;
        if numbers.is_empty() { name.clone() } else { format!("{name} [{}]", numbers.join(" ")) }
    }

    /// Whether this is a client of the other library.
    pub fn is_incumbent(&self, actor: &str) -> bool {
        self.incumbents.iter().any(|name| name == actor)
    }
}

/// Whether one of the steps is such, also within others.
fn any(steps: &[Step], such: fn(&Step) -> bool) -> bool {
    steps.iter().any(|step| match step {
        Step::Parallel(times) | Step::Repeat(times) => any(&times.steps, such),
        step => such(step),
    })
}

fn asks_for_permit(step: &Step) -> bool {
    let (Step::Acquire(ask) | Step::Try(ask) | Step::Start(ask)) = step else { return false };
    ask.mode == Mode::Permit
}

fn shares(step: &Step) -> bool {
    let (Step::Acquire(ask) | Step::Try(ask) | Step::Start(ask)) = step else { return false };
    matches!(ask.mode, Mode::Read | Mode::Write)
}

/// Whether the step asks who holds; a step that asks who leads reads it from the lock, too.
fn asks_who(step: &Step) -> bool {
    match step {
        Step::State(state) => !state.info.is_empty(),
        Step::Leader(_) | Step::Observe(_) => true,
        Step::Acquire(ask) => match &ask.expect {
            Some(Expect::Error(trouble)) => trouble.fields.contains_key("holder"),
            _ => false,
        },
        _ => false,
    }
}

fn has_options_in_url(step: &Step) -> bool {
    let Step::Connect(Connect { url: Some(url), .. }) = step else { return false };
    url.starts_with("$url?")
}

fn is_about_cells(step: &Step) -> bool {
    match step {
        Step::Acquire(ask) | Step::Try(ask) | Step::Start(ask) => ask.job.is_some(),
        Step::Job(_) | Step::Value(_) | Step::Write(_) | Step::Update(_) => true,
        _ => false,
    }
}

fn speaks_redis(step: &Step) -> bool {
    let Step::Connect(Connect { url: Some(url), .. }) = step else {
        return matches!(step, Step::Redis(_));
    };
    url.starts_with("redis://") && url.ends_with("$address")
}

/// Reads all cases of a folder, in the order of the files and of the cases in them.
pub fn read(folder: &Path) -> Vec<Case> {
    let files = std::fs::read_dir(folder).expect("the folder of the cases can be read");
    let mut files: Vec<_> = files.map(|file| file.expect("it can be listed").path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "yaml"));
    files.sort();
    let cases: Vec<Case> = files
        .iter()
        .flat_map(|file| {
            let text = std::fs::read_to_string(file).expect("a file of cases can be read");
            // `y`, `n`, `on` and `off` are names here, as in YAML 1.2.
            let options = serde_saphyr::options! { strict_booleans: true };
            let cases: Vec<Case> = serde_saphyr::from_str_with_options(&text, options)
                .unwrap_or_else(|error| panic!("{}: {error}", file.display()));
            cases
        })
        .collect();
    let mut names = BTreeSet::new();
    for case in &cases {
        assert!(names.insert(&case.name), "two cases are called `{}`", case.name);
    }
    cases
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::columns;
    use super::read;

    /// A case that gains a need, or a column that loses a store, must not leave the grids in silence.
    #[test]
    fn every_case_is_played_somewhere_in_rust() {
        let columns = columns("actor".as_ref());
        for case in read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("cases")) {
            assert!(columns.iter().any(|column| column.plays(&case)), "{}", case.name);
        }
    }
}
