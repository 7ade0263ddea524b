//! fencelock itself, async and blocking.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use fencelock::port::Mode;
use fencelock::{Client, Guard, Lock, Released};
use serde_json::json;

use super::course::{Contestant, Course, pair_figures, ready};
use crate::machine;

/// The async client; `local` and `mode` as the course says. With `clients` there are so many, which take the lock by turns: as in so many
/// processes, whoever waits does so in the store's queue.
#[derive(Clone)]
pub(super) struct Fencelock {
    clients: Arc<[Client]>,
    turn: Arc<AtomicUsize>,
    local: Option<u32>,
    mode: Mode,
}

impl Fencelock {
    pub(super) async fn connect(course: &Course) -> Self {
        let url = url(course);
        let count: usize = course.text("clients").parse().unwrap_or(1);
        let mut clients = Vec::with_capacity(count);
        for _ in 0..count {
            clients.push(fencelock::connect(&url).await.expect("the store is there"));
        }
        let local = course.text("local").parse().ok();
        Self { clients: clients.into(), turn: Arc::default(), local, mode: mode(course) }
    }

    fn client(&self) -> &Client {
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        &self.clients[turn % self.clients.len()]
    }
}

/// The store, on a database in the way that `by` says: `postgres+advisory://` by advisory locks.
fn url(course: &Course) -> String {
    match course.text("by") {
        "" => course.text("url").to_owned(),
        by => {
            // Locks of a session refuse `durability`.
            let url = course.text("url").split('?').next().unwrap_or_default();
            url.replacen("://", &format!("+{by}://"), 1)
        }
    }
}

impl Contestant for Fencelock {
    type Guard = Guard;

    async fn acquire(&self, key: &str) -> Guard {
        let lock = lock(self.client(), self.mode, key);
        let lock = if let Some(local) = self.local { lock.local(local) } else { lock };
        lock.acquire().await.expect("an answer")
    }

    async fn release(&self, guard: Guard) {
        assert_eq!(guard.release().await, Released::Released, "the lock was lost");
    }
}

/// How the course wants the lock to be held; a mutex unless it says more.
pub(super) fn mode(course: &Course) -> Mode {
    serde_json::from_value(json!(course.text("mode"))).unwrap_or_default()
}

/// The lock as it is to be held; a semaphore has one permit, so that it excludes like the others.
pub(super) fn lock(client: &Client, mode: Mode, key: &str) -> Lock {
    match mode {
        Mode::Read => client.read_lock(key),
        Mode::Write => client.write_lock(key),
        Mode::Permit => client.semaphore(key, 1),
        _ => client.lock(key),
    }
}

/// The course `pair` on the blocking twin.
pub(super) fn blocking_pair(course: &Course) {
    let client = fencelock::blocking::connect(course.text("url")).expect("the store is there");
    let lock = client.lock(course.text("key"));
    let pair = || {
        let guard = lock.acquire().expect("an answer");
        assert_eq!(guard.release(), Released::Released, "the lock was lost");
    };
    let pairs = course.number("pairs");
    (0..pairs / 10).for_each(|_| pair());
    ready();
    let times = (0..pairs).map(|_| {
        let begin = Instant::now();
        pair();
        begin.elapsed()
    });
    println!("{}", pair_figures(times.collect()));
}

/// Many leases held at the same time: what keeping them costs this process.
pub(super) async fn leases(course: &Course) {
    let client = fencelock::connect(course.text("url")).await.expect("the store is there");
    let ttl = Duration::from_millis(course.number("ttl"));
    let key = |number: u64| format!("{}:{number}", course.text("key"));
    let warm = client.lock(&key(0)).acquire().await.expect("an answer");
    assert_eq!(warm.release().await, Released::Released);
    let idle = machine::resident_mb();
    let mut guards = Vec::new();
    let mut asked = tokio::task::JoinSet::new();
    for number in 0..course.number("leases") {
        let acquire = client.lock(&key(number)).ttl(ttl).acquire();
        asked.spawn(acquire);
        if asked.len() >= 64 {
            guards.extend(asked.join_next().await);
        }
    }
    guards.extend(asked.join_all().await.into_iter().map(Ok));
    let guards: Vec<Guard> =
        guards.into_iter().map(|guard| guard.expect("no panic").expect("an answer")).collect();
    ready();
    let (begin, cpu) = (Instant::now(), machine::own_cpu_seconds());
    tokio::time::sleep(course.seconds()).await;
    let spent = machine::own_cpu_seconds() - cpu;
    let figures = json!({
        "cpu_percent": 100.0 * spent / begin.elapsed().as_secs_f64(),
        "above_idle_mb": machine::resident_mb() - idle,
        "lost": guards.iter().filter(|guard| !guard.is_held()).count(),
    });
    println!("{figures}");
}

/// One lock held after many short pairs: what the server hears of it is the starter's to count.
pub(super) async fn rest(course: &Course) {
    let contestant = Fencelock::connect(course).await;
    for number in 0..course.number("pairs") {
        let key = format!("{}:{number}", course.text("key"));
        contestant.release(contestant.acquire(&key).await).await;
    }
    let guard = contestant.acquire(course.text("key")).await;
    ready();
    tokio::time::sleep(course.seconds()).await;
    println!("{}", json!({ "lost": u8::from(!guard.is_held()) }));
    // Not released: the starter counts up to here.
    std::process::exit(0);
}

/// Holds the lock longer than the course lasts, for somebody else to wait for it.
pub(super) async fn hold(course: &Course) {
    let contestant = Fencelock::connect(course).await;
    let guard = contestant.acquire(course.text("key")).await;
    ready();
    tokio::time::sleep(course.seconds() + Duration::from_millis(500)).await;
    println!("{}", json!({ "lost": u8::from(!guard.is_held()) }));
    // Not released: the starter counts up to here.
    std::process::exit(0);
}

/// Waits for a lock that is held: what that costs this process.
pub(super) async fn wait(course: &Course) {
    let contestant = Fencelock::connect(course).await;
    ready();
    let lock = contestant.client().lock(course.text("key"));
    let waiting = tokio::spawn(async move { lock.acquire().await });
    tokio::time::sleep(Duration::from_millis(100)).await;
    let (begin, cpu) = (Instant::now(), machine::own_cpu_seconds());
    tokio::time::sleep(course.seconds()).await;
    let spent = machine::own_cpu_seconds() - cpu;
    assert!(!waiting.is_finished(), "the lock was granted while somebody held it");
    let per_second = spent * 1000.0 / begin.elapsed().as_secs_f64();
    println!("{}", json!({ "cpu_ms_per_s": per_second }));
}
