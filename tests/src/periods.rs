//! A scheduled job on nodes whose clocks disagree: in each period it starts once at most, on every database.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fencelock::Client;
use fencelock::port::{BoxFuture, Instant, Runtime};
use fencelock::runtime::TokioRuntime;
use futures_util::future::join_all;

use crate::database::DatabaseServer;
use crate::in_full;

const NODES: u32 = 8;
const PERIOD: Duration = Duration::from_millis(20);
/// The clocks of nodes are wrong by up to so much, to either side.
const SKEW: Duration = Duration::from_secs(60);
/// A start is looked at by this process up to so much after the store has read its clock.
const LATE: Duration = Duration::from_secs(10);

/// The platform of a machine whose wall clock is wrong.
struct Skewed {
    rest: TokioRuntime,
    wall: i64,
}

impl Runtime for Skewed {
    fn now(&self) -> Instant {
        self.rest.now()
    }
    fn wall(&self) -> u64 {
        self.rest.wall().saturating_add_signed(self.wall)
    }
    fn sleep_until(&self, at: Instant) -> BoxFuture<'static, ()> {
        self.rest.sleep_until(at)
    }
    fn spawn(&self, task: BoxFuture<'static, ()>) {
        self.rest.spawn(task);
    }
    fn process(&self) -> u32 {
        self.rest.process()
    }
    fn random(&self, bytes: &mut [u8]) {
        self.rest.random(bytes);
    }
}

/// The starts of all runs, and whether any of them overlapped.
#[derive(Default)]
struct Starts {
    in_period: Mutex<BTreeMap<u128, u32>>,
    inside: AtomicUsize,
    wrong: Mutex<Option<String>>,
}

impl Starts {
    fn periods(&self) -> usize {
        self.in_period.lock().unwrap().len()
    }

    fn is_over(&self, periods: usize) -> bool {
        self.periods() >= periods || self.wrong.lock().unwrap().is_some()
    }

    /// A run has started for this instant.
    fn begins(&self, instant: Duration) {
        let period = instant.as_nanos() / PERIOD.as_nanos();
        let mut in_period = self.in_period.lock().unwrap();
        let starts = in_period.entry(period).or_default();
        *starts += 1;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let wrong = if *starts > 1 {
            Some(format!("{starts} runs of the instant {instant:?}"))
        } else if self.inside.fetch_add(1, Ordering::SeqCst) > 0 {
            Some(format!("the run of {instant:?} began beside another one"))
        } else if instant > now + PERIOD || now.saturating_sub(instant) > LATE {
            Some(format!("the run of {instant:?} began at {now:?}"))
        } else {
            None
        };
        if let Some(wrong) = wrong {
            self.wrong.lock().unwrap().get_or_insert(wrong);
        }
    }

    fn ends(&self) {
        self.inside.fetch_sub(1, Ordering::SeqCst);
    }
}

/// S8, B81, B82: a run ends long before the other nodes' timers fire, and all of them ask again and again; 200 periods, in full
/// 10,000.
pub async fn a_job_starts_once_in_a_period<S: DatabaseServer>() {
    let server = S::start();
    let url = server.place("a");
    let periods = if in_full() { 10_000 } else { 200 };
    let began = std::time::Instant::now();
    let starts = run_for(&url, periods).await;
    assert_eq!(starts.wrong.lock().unwrap().take(), None);
    println!("{} periods in {:?}", starts.periods(), began.elapsed());
}

/// Runs the job on all nodes until it has started in so many periods, or something is wrong.
async fn run_for(url: &str, periods: usize) -> Arc<Starts> {
    let starts = Arc::<Starts>::default();
    let nodes = join_all((0..NODES).map(|number| node(url, number))).await;
    let asked = nodes.iter().zip(1..);
    join_all(asked.map(|(client, number)| ask(client, number, &starts, periods))).await;
    starts
}

/// A node's client. The clocks lie evenly over the whole range.
async fn node(url: &str, number: u32) -> Client {
    let micros = |time: Duration| time.as_micros() as i64;
    let wall = micros(SKEW * 2 * number / (NODES - 1)) - micros(SKEW);
    let rest = TokioRuntime::current().expect("called in a runtime");
    let builder = Client::builder().runtime(Arc::new(Skewed { rest, wall }));
    builder.connect(url).await.expect("the server takes connections")
}

/// Asks for a run several times in each period, each node at its own pace.
async fn ask(client: &Client, number: u32, starts: &Starts, periods: usize) {
    let job = client.job("nightly", PERIOD);
    while !starts.is_over(periods) {
        if let Ok(run) = job.start().await.expect("the store answers") {
            starts.begins(run.instant().duration_since(UNIX_EPOCH).unwrap());
            tokio::task::yield_now().await;
            starts.ends();
            run.succeed().await.check().expect("nobody else has it");
        }
        tokio::time::sleep(PERIOD * number / (2 * NODES)).await;
    }
}
