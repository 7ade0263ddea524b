//! The courses every Rust contestant runs, the same code for all of them. The crate `peers/rslock` includes this file.

use std::collections::BTreeMap;
use std::future::Future;
use std::io::{BufRead, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

#[path = "section.rs"]
mod section;
#[path = "turn.rs"]
mod turn;

use section::Section;
use turn::Turn;

/// The operations that are measured: acquire and release, waiting as long as it takes.
pub(crate) trait Contestant: Clone + Send + Sync + 'static {
    /// The value that release needs.
    type Guard: Send;
    /// Gets the lock.
    fn acquire(&self, key: &str) -> impl Future<Output = Self::Guard> + Send;
    /// Lets it go, and stays for the answer.
    fn release(&self, guard: Self::Guard) -> impl Future<Output = ()> + Send;
}

/// The words `name=value` of the command line.
pub(crate) struct Course(BTreeMap<String, String>);

impl Course {
    pub(crate) fn parse(words: impl Iterator<Item = String>) -> Self {
        Self(
            words
                .filter_map(|word| word.split_once('=').map(|(n, v)| (n.to_owned(), v.to_owned())))
                .collect(),
        )
    }

    pub(crate) fn text(&self, name: &str) -> &str {
        self.0.get(name).map(String::as_str).unwrap_or_default()
    }

    pub(crate) fn number(&self, name: &str) -> u64 {
        let text = self.text(name);
        text.parse().unwrap_or_else(|_| panic!("`{name}={text}` is no number"))
    }

    pub(crate) fn seconds(&self) -> Duration {
        Duration::from_millis(self.number("milliseconds"))
    }
}

/// Tells the starter that all is connected and warm, and waits until everybody else is.
pub(crate) fn ready() {
    println!("ready");
    std::io::stdout().flush().expect("standard output is open");
    std::io::stdin().lock().read_line(&mut String::new()).expect("standard input is open");
}

/// Runs the course `workload` and prints its figures.
pub(crate) async fn run<C: Contestant>(contestant: C, workload: &str, course: &Course) {
    let figures = match workload {
        "pair" => pair(&contestant, course).await,
        "parallel" => parallel(&contestant, course).await,
        "contend" => contend(&contestant, course).await,
        _ => panic!("there is no course `{workload}`"),
    };
    println!("{figures}");
}

/// Acquire and release with nobody else around, one after the other.
async fn pair<C: Contestant>(contestant: &C, course: &Course) -> Value {
    let (key, pairs) = (course.text("key"), course.number("pairs"));
    let warm = pairs / 10;
    for _ in 0..warm {
        contestant.release(contestant.acquire(key).await).await;
    }
    ready();
    let mut times = Vec::with_capacity(pairs as usize);
    let mut acquires = Vec::with_capacity(pairs as usize);
    for _ in 0..pairs {
        let begin = Instant::now();
        let guard = contestant.acquire(key).await;
        acquires.push(begin.elapsed());
        contestant.release(guard).await;
        times.push(begin.elapsed());
    }
    let mut figures = pair_figures(times);
    figures["acquire_p50_us"] = pair_figures(acquires)["p50_us"].take();
    figures["warm_pairs"] = warm.into();
    figures
}

/// The median and the tail of `times`, in microseconds.
pub(crate) fn pair_figures(mut times: Vec<Duration>) -> Value {
    times.sort_unstable();
    let at =
        |part: f64| times[((times.len() - 1) as f64 * part) as usize].as_nanos() as f64 / 1000.0;
    json!({ "p50_us": at(0.5), "p99_us": at(0.99), "pairs": times.len() })
}

/// As many keys as tasks, all in flight.
async fn parallel<C: Contestant>(contestant: &C, course: &Course) -> Value {
    let stop = Arc::new(AtomicBool::new(false));
    let pairs = Arc::new(AtomicU64::new(0));
    for number in 0..course.number("keys") {
        let key = format!("{}:{number}", course.text("key"));
        contestant.release(contestant.acquire(&key).await).await;
        let (contestant, stop, pairs) = (contestant.clone(), stop.clone(), pairs.clone());
        tokio::spawn(async move {
            while !stop.load(Ordering::Relaxed) {
                contestant.release(contestant.acquire(&key).await).await;
                pairs.fetch_add(1, Ordering::Relaxed);
            }
        });
    }
    ready();
    let (begin, before) = (Instant::now(), pairs.load(Ordering::Relaxed));
    tokio::time::sleep(course.seconds()).await;
    let done = pairs.load(Ordering::Relaxed) - before;
    json!({ "pairs_per_s": done as f64 / begin.elapsed().as_secs_f64() })
}

/// The counters of one contending task.
#[derive(Default)]
struct Tally {
    acquired: AtomicU64,
    /// How often the one before was another task.
    handed: AtomicU64,
    held_ns: AtomicU64,
    /// When the present wait began, in nanoseconds since the start; 0 if it does not wait.
    waits_since: AtomicU64,
    waits_us: std::sync::Mutex<Vec<u64>>,
    /// From the release of the one before to the acquisition.
    passages_ns: std::sync::Mutex<Vec<u64>>,
}

/// Several tasks, in this and other processes, and one key.
async fn contend<C: Contestant>(contestant: &C, course: &Course) -> Value {
    let tasks = course.number("tasks");
    let turn = Arc::new(Turn::open(course.text("turn")));
    let length = Duration::from_micros(course.number("section_us"));
    let tallies: Vec<Arc<Tally>> = (0..tasks).map(|_| Arc::default()).collect();
    let warm = format!("{}:warm:{}", course.text("key"), course.number("first"));
    contestant.release(contestant.acquire(&warm).await).await;
    ready();
    let begin = Instant::now();
    let since = move || begin.elapsed().as_nanos() as u64;
    for (number, tally) in tallies.iter().cloned().enumerate() {
        let (contestant, turn) = (contestant.clone(), turn.clone());
        let (key, me) = (course.text("key").to_owned(), course.number("first") + number as u64);
        tokio::spawn(async move {
            let mut section = Section::new(length);
            loop {
                let asked = since().max(1);
                tally.waits_since.store(asked, Ordering::Relaxed);
                let guard = contestant.acquire(&key).await;
                let (won, last) = (since(), turn.read());
                tally.waits_since.store(0, Ordering::Relaxed);
                tally.acquired.fetch_add(1, Ordering::Relaxed);
                if last.task != me {
                    tally.handed.fetch_add(1, Ordering::Relaxed);
                    let passage = turn::now().saturating_sub(last.released);
                    tally.passages_ns.lock().expect("not poisoned").push(passage);
                }
                if length > Duration::ZERO {
                    tally.waits_us.lock().expect("not poisoned").push((won - asked) / 1000);
                    section.pass().await;
                }
                tally.held_ns.fetch_add(since() - won, Ordering::Relaxed);
                turn.write(me);
                contestant.release(guard).await;
            }
        });
    }
    tokio::time::sleep(course.seconds()).await;
    contend_figures(&tallies, begin)
}

fn contend_figures(tallies: &[Arc<Tally>], begin: Instant) -> Value {
    let now = begin.elapsed();
    let sum = |count: fn(&Tally) -> &AtomicU64| {
        tallies.iter().map(|tally| count(tally).load(Ordering::Relaxed)).sum::<u64>()
    };
    let mut waits = Vec::new();
    let mut passages = Vec::new();
    for tally in tallies {
        waits.append(&mut tally.waits_us.lock().expect("not poisoned"));
        passages.append(&mut tally.passages_ns.lock().expect("not poisoned"));
        // A wait that has not ended counts with what it has lasted: starving is not to look fast.
        let since = tally.waits_since.load(Ordering::Relaxed);
        if since > 0 {
            waits.push((now.as_nanos() as u64).saturating_sub(since) / 1000);
        }
    }
    passages.sort_unstable();
    let passage = |part: f64| {
        let place = (passages.len().saturating_sub(1) as f64 * part) as usize;
        passages.get(place).map(|ns| *ns as f64 / 1000.0)
    };
    let acquired = |tally: &Arc<Tally>| tally.acquired.load(Ordering::Relaxed);
    json!({
        "acquired": tallies.iter().map(acquired).collect::<Vec<u64>>(),
        "handed": sum(|tally| &tally.handed),
        "held_s": sum(|tally| &tally.held_ns) as f64 / 1e9,
        "seconds": now.as_secs_f64(),
        "waits_us": waits,
        "passage_p50_us": passage(0.5),
        "passage_p99_us": passage(0.99),
    })
}
