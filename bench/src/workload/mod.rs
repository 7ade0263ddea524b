//! The workloads: what is run, in how many processes, and which figures it gives.

mod busy;
mod databases;
mod doors;
mod handover;
mod kinds;
mod leases;
mod pair;
mod parallel;
mod queues;
mod redlock;
mod sqlite;

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use crate::Result;
use crate::arguments::Arguments;
use crate::contender::{Contender, Entry, race};
use crate::report::{Row, Sheet, median};
use crate::server::{Counts, Server};

/// The peers with a mutex on Redis.
const MUTEXES: [&str; 7] = [
    "rslock",
    "redislock",
    "redsync",
    "rueidislock",
    "redis-semaphore",
    "redis-py",
    "python-redis-lock",
];

/// One of the things measured.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Workload {
    Pair,
    Parallel,
    Handover,
    Busy,
    Kinds,
    Redlock,
    Leases,
    Sqlite,
    Doors,
    Queues,
    Databases,
}

impl Workload {
    pub(crate) const ALL: [Self; 11] = [
        Self::Pair,
        Self::Parallel,
        Self::Handover,
        Self::Busy,
        Self::Kinds,
        Self::Redlock,
        Self::Leases,
        Self::Sqlite,
        Self::Doors,
        Self::Queues,
        Self::Databases,
    ];

    /// Its word on the command line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Pair => "pair",
            Self::Parallel => "parallel",
            Self::Handover => "handover",
            Self::Busy => "busy",
            Self::Kinds => "kinds",
            Self::Redlock => "redlock",
            Self::Leases => "leases",
            Self::Sqlite => "sqlite",
            Self::Doors => "doors",
            Self::Queues => "queues",
            Self::Databases => "databases",
        }
    }

    pub(crate) async fn run(self, bench: &mut Bench) -> Result<Vec<Sheet>> {
        eprintln!("measuring {}", self.name());
        match self {
            Self::Pair => pair::run(bench).await,
            Self::Parallel => parallel::run(bench).await,
            Self::Handover => handover::run(bench).await,
            Self::Busy => busy::run(bench).await,
            Self::Kinds => kinds::run(bench).await,
            Self::Redlock => redlock::run(bench).await,
            Self::Leases => leases::run(bench).await,
            Self::Sqlite => sqlite::run(bench).await,
            Self::Doors => doors::run(bench).await,
            Self::Queues => queues::run(bench).await,
            Self::Databases => databases::run(bench).await,
        }
    }
}

/// The state that the workloads share.
pub(crate) struct Bench {
    pub server: Server,
    pub quick: bool,
    peers: Vec<Contender>,
    room: PathBuf,
    rounds: usize,
    /// Numbers the runs, so that none meets another's key.
    runs: u64,
}

impl Bench {
    pub(crate) fn new(
        server: Server,
        peers: Vec<Contender>,
        room: &Path,
        arguments: &Arguments,
    ) -> Self {
        let Arguments { quick, rounds, .. } = *arguments;
        Self { server, quick, peers, room: room.to_owned(), rounds, runs: 0 }
    }

    /// A figure for the full run, and one for the quick.
    pub(crate) fn of(&self, full: u64, quick: u64) -> u64 {
        if self.quick { quick } else { full }
    }

    /// The peers whose names are given, as far as they are installed.
    fn peers(&self, names: &[&str]) -> Vec<Contender> {
        let peers = self.peers.iter().filter(|peer| names.contains(&peer.name.as_str()));
        peers.cloned().collect()
    }

    /// The words every course on the server needs, with a key nobody has used.
    fn words(&mut self) -> Vec<String> {
        self.runs += 1;
        let address = self.server.address();
        vec![
            format!("key=bench:{}", self.runs),
            format!("url=redis://{address}"),
            format!("server={address}"),
        ]
    }

    /// Lets the entries run together; what the server counted meanwhile comes with their figures.
    async fn counted(
        &mut self,
        entries: Vec<Entry>,
        lasts: Duration,
    ) -> Result<(Vec<Value>, Counts)> {
        let server = RefCell::new(&mut self.server);
        race(entries, lasts, || server.borrow_mut().reset(), || server.borrow_mut().counts()).await
    }

    /// Measures every contender once a round, by turns, and fills the sheet with the medians.
    async fn rounds(
        &mut self,
        sheet: &mut Sheet,
        contenders: Vec<Contender>,
        mut measure: impl AsyncFnMut(&mut Self, &Contender) -> Result<Vec<f64>>,
    ) -> Result<()> {
        let mut seen: Vec<Vec<Vec<f64>>> = vec![Vec::new(); contenders.len()];
        for _ in 0..self.rounds {
            for (contender, seen) in contenders.iter().zip(&mut seen) {
                self.server.flush()?;
                let measured = match measure(self, contender).await {
                    // The time of nothing.
                    Ok(figures) if !figures[0].is_finite() => Err("it never had the lock".into()),
                    measured => measured,
                };
                match measured {
                    Ok(figures) => seen.push(figures),
                    Err(error) => {
                        // Of fencelock a missing figure is a failure; of a peer it is a gap to be told.
                        if contender.name.starts_with("fencelock") {
                            return Err(format!("{}: {error}", contender.name).into());
                        }
                        sheet.notes.push(format!("{} failed: {error}", contender.name));
                    }
                }
            }
        }
        for (contender, seen) in contenders.into_iter().zip(seen) {
            if seen.is_empty() {
                continue;
            }
            let column = |at: usize| median(seen.iter().map(|figures| figures[at]).collect());
            let figures = (0..seen[0].len()).map(column).collect();
            sheet.rows.push(Row { name: contender.name, figures });
        }
        Ok(())
    }
}

fn number(figures: &Value, name: &str) -> Result<f64> {
    figures[name].as_f64().ok_or_else(|| format!("no figure `{name}`").into())
}

fn milliseconds(length: u64) -> String {
    format!("milliseconds={length}")
}

/// The list of numbers called `name` of all processes together, in order.
fn all(processes: &[Value], name: &str) -> Vec<f64> {
    let lists = processes.iter().filter_map(|figures| figures[name].as_array());
    let mut all: Vec<f64> = lists.flatten().filter_map(Value::as_f64).collect();
    all.sort_by(f64::total_cmp);
    all
}

/// The value below which `part` of the sorted values lie.
fn quantile(sorted: &[f64], part: f64) -> f64 {
    let place = (sorted.len().saturating_sub(1) as f64 * part) as usize;
    sorted.get(place).copied().unwrap_or(f64::NAN)
}

/// The worst of a figure that each process has. Nothing was handed to one that starved, which has none.
fn worst(processes: &[Value], name: &str) -> f64 {
    let each = processes.iter().map(|figures| number(figures, name).unwrap_or(f64::INFINITY));
    each.fold(f64::NAN, f64::max)
}

/// The fewest acquisitions of a task as part of the most.
fn evenness(processes: &[Value]) -> f64 {
    let acquired = all(processes, "acquired");
    quantile(&acquired, 0.0) / quantile(&acquired, 1.0).max(1.0)
}

/// The words of one of several processes that contend for one key.
fn contending(
    shared: &[String],
    length: Duration,
    section: Duration,
    tasks: u64,
    process: u64,
    turn: &str,
) -> Vec<String> {
    let mut words = shared.to_vec();
    words.push(milliseconds(length.as_millis() as u64));
    words.push(format!("section_us={}", section.as_micros()));
    words.push(format!("tasks={tasks}"));
    words.push(format!("first={}", process * tasks));
    words.push(format!("turn={turn}"));
    words
}

/// A file for the processes of one run to note in who had the lock last.
fn turn_file(room: &Path) -> Result<String> {
    let path = room.join("turn");
    std::fs::write(&path, [255; 16])?;
    Ok(path.to_string_lossy().into_owned())
}
