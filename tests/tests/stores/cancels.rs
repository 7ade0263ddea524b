//! Acquires and releases cancelled at random points against real stores: afterwards nobody holds what nobody has, and
//! nobody waits who is not there.
//!
//! 1,000 cancellations a store; 10,000 with `FENCELOCK_FULL=1`. `FENCELOCK_SEED` repeats the choices of a run.

use std::future::Future;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use fencelock::{Client, Code, Stats};
use fencelock_tests::database::DatabaseServer;
use fencelock_tests::database_sessions::{DatabaseSessions, Way};
use fencelock_tests::etcd::EtcdServer;
use fencelock_tests::mysql::{MysqlServer, MysqlSessions};
use fencelock_tests::postgres::{PostgresServer, PostgresSessions};
use fencelock_tests::servers::RedisServer;
use fencelock_tests::zookeeper::ZookeeperServer;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use rusqlite::Connection;

const CLIENTS: usize = 4;
const LOCKS: usize = 6;
const TASKS: usize = 48;
/// The time that the machine may need; a cancelled operation itself is undone within a round trip.
const PATIENCE: Duration = Duration::from_secs(10);

fn cancellations() -> u64 {
    if fencelock_tests::in_full() { 10_000 } else { 1_000 }
}

fn seed() -> u64 {
    let given = std::env::var("FENCELOCK_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = given.unwrap_or_else(|| RandomState::new().build_hasher().finish());
    println!("FENCELOCK_SEED={seed}");
    seed
}

/// Polls a future so many times and then drops it.
struct Polls<F> {
    future: Option<Pin<Box<F>>>,
    left: u32,
}

impl<F: Future> Future for Polls<F> {
    type Output = Option<F::Output>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if self.left == 0 {
            self.future = None;
            return Poll::Ready(None);
        }
        self.left -= 1;
        let future = self.future.as_mut().expect("it is polled until it is done");
        match future.as_mut().poll(context) {
            Poll::Ready(value) => Poll::Ready(Some(value)),
            Poll::Pending if self.left == 0 => {
                self.future = None;
                Poll::Ready(None)
            }
            Poll::Pending => Poll::Pending,
        }
    }
}

/// When a future is dropped.
#[derive(Clone, Copy)]
enum Moment {
    Poll(u32),
    Time(Duration),
}

impl Moment {
    fn draw(dice: &mut StdRng) -> Self {
        if dice.random_bool(0.5) {
            Self::Poll(dice.random_range(1..6))
        } else {
            Self::Time(Duration::from_micros(dice.random_range(0..4000)))
        }
    }

    /// Runs the future up to the moment; `None` if it was not done by then.
    async fn cut<F: Future>(self, future: F) -> Option<F::Output> {
        match self {
            Self::Poll(left) => Polls { future: Some(Box::pin(future)), left }.await,
            Self::Time(time) => tokio::time::timeout(time, future).await.ok(),
        }
    }
}

/// Acquires, tries and releases, each cut short somewhere, until enough acquires and tries were.
async fn cancel(clients: Arc<Vec<Client>>, cancelled: Arc<AtomicU64>, enough: u64, seed: u64) {
    let mut dice = StdRng::seed_from_u64(seed);
    while cancelled.load(Ordering::Relaxed) < enough {
        let client = &clients[dice.random_range(0..CLIENTS)];
        let lock = client
            .lock(&format!("lock {}", dice.random_range(0..LOCKS)))
            .ttl(Duration::from_secs(20))
            .fair(dice.random_bool(0.7))
            .local([0, 16][usize::from(dice.random_bool(0.5))])
            .renew(dice.random_bool(0.8));
        let moment = Moment::draw(&mut dice);
        let guard = match dice.random_range(0..3) {
            0 => {
                moment.cut(lock.try_acquire()).await.map(|tried| tried.expect("the store is there"))
            }
            1 => moment.cut(lock.acquire()).await.map(|guard| Some(guard.expect("it is there"))),
            _ => {
                // A wait that ends by itself gives up too, at a place of its own; it is not counted.
                let wait = Duration::from_micros(dice.random_range(1..3000));
                let within = moment.cut(lock.acquire_within(wait)).await;
                within.map(|guard| match guard {
                    Ok(guard) => Some(guard),
                    Err(error) if error.code() == Code::Timeout => None,
                    Err(error) => panic!("the store is there: {error}"),
                })
            }
        };
        let Some(guard) = guard else {
            cancelled.fetch_add(1, Ordering::Relaxed);
            continue;
        };
        let Some(guard) = guard else { continue };
        tokio::time::sleep(Duration::from_micros(dice.random_range(0..500))).await;
        match dice.random_range(0..3) {
            0 => drop(guard),
            1 => guard.release().await.check().expect("nobody takes a lock of 20 s away"),
            _ => {
                let _ = Moment::draw(&mut dice).cut(guard.release()).await;
            }
        }
    }
}

/// Cancels, and then looks at clients and locks until nothing is left.
async fn storm(url: &str) -> Arc<Vec<Client>> {
    let (begin, seed) = (Instant::now(), seed());
    let mut clients = Vec::new();
    for _ in 0..CLIENTS {
        // Hundreds of requests at once on a busy machine.
        let client = Client::builder().option("timeout", "30s");
        clients.push(client.connect(url).await.expect("the store is there"));
    }
    let (clients, cancelled) = (Arc::new(clients), Arc::new(AtomicU64::new(0)));
    let tasks = (0..TASKS as u64).map(|task| {
        tokio::spawn(cancel(clients.clone(), cancelled.clone(), cancellations(), seed ^ task))
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.expect("no task fails");
    }
    let end = Instant::now() + PATIENCE;
    loop {
        let mut left = Vec::new();
        for number in 0..LOCKS {
            let name = format!("lock {number}");
            let state = clients[0].lock(&name).inspect().await.expect("the store is there");
            if !state.holders.is_empty() || !state.waiters.is_empty() {
                left.push(format!("{name}: {state:?}"));
            }
        }
        let loads = clients.iter().map(Client::stats).filter(|load| *load != Stats::default());
        left.extend(loads.map(|load| format!("a client carries {load:?}")));
        if left.is_empty() {
            break;
        }
        assert!(Instant::now() < end, "left after all was cancelled: {left:#?}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    println!(
        "{} cancelled in {:?}, nothing left",
        cancelled.load(Ordering::Relaxed),
        begin.elapsed()
    );
    clients
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cancelled_acquires_leave_nothing_on_redis() {
    let server = RedisServer::start();
    storm(server.url().as_str()).await;
    let mut raw = server.admin();
    let keys: Vec<String> = redis::cmd("KEYS").arg("*").query(&mut raw).unwrap();
    for key in &keys {
        assert!(!key.contains("}:held:"), "{key} is held by nobody");
        let queue: Option<String> = redis::cmd("HGET").arg(key).arg("q").query(&mut raw).unwrap();
        assert_eq!(queue.unwrap_or_default(), "", "tickets of nobody in {key}");
        let end: i64 = redis::cmd("PTTL").arg(key).query(&mut raw).unwrap();
        assert!(end > 0, "{key} has no end");
    }
    assert_eq!(keys.len(), LOCKS, "one record for each lock: {keys:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cancelled_acquires_leave_nothing_in_sqlite() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("locks.db");
    storm(&format!("sqlite:{}", file.display())).await;
    let raw = Connection::open(&file).unwrap();
    let count = |what: &str| -> i64 {
        let query = format!("SELECT count(*) FROM fencelock_lock WHERE {what}");
        raw.query_row(&query, [], |row| row.get(0)).unwrap()
    };
    assert_eq!(count("TRUE"), i64::try_from(LOCKS).unwrap());
    assert_eq!(count("owner IS NOT NULL"), 0, "held by nobody");
    assert_eq!(count("waiting > 0"), 0, "tickets of nobody");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cancelled_acquires_leave_nothing_on_etcd() {
    let server = EtcdServer::start();
    let clients = storm(&format!("{}?ttl=20s", server.url("p"))).await;
    assert_eq!(server.keys("p/lock"), [] as [&str; 0]);
    // Nothing is refused any more, though the sessions live.
    let end = Instant::now() + PATIENCE;
    while !server.keys("p/!left!").is_empty() {
        assert!(Instant::now() < end, "{:?}", server.keys("p/!left!"));
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    drop(clients);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cancelled_acquires_leave_nothing_on_zookeeper() {
    let server = ZookeeperServer::start();
    storm(&format!("{}?ttl=20s", server.url("p"))).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cancelled_acquires_leave_nothing_on_postgres() {
    let server = PostgresServer::start();
    storm(&server.place("shop")).await;
    let left = "SELECT count(*) FROM shop.fencelock WHERE owner IS NOT NULL OR waiting > 0";
    assert_eq!(server.sql(left), "0", "of nobody");
    assert_eq!(server.open_transactions("shop"), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cancelled_acquires_leave_nothing_on_postgres_by_session() {
    storm_by_session::<PostgresSessions>(Way::Names).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cancelled_acquires_leave_nothing_on_postgres_by_row() {
    storm_by_session::<PostgresSessions>(Way::Rows).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cancelled_acquires_leave_nothing_on_mariadb_by_session() {
    storm_by_session::<MysqlSessions>(Way::Names).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cancelled_acquires_leave_nothing_on_mariadb_by_row() {
    storm_by_session::<MysqlSessions>(Way::Rows).await;
}

async fn storm_by_session<S: DatabaseSessions>(way: Way) {
    let server = S::start(way);
    storm(&server.at(server.port(), "?ttl=20s")).await;
    assert_eq!(server.locks(), "0|0");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cancelled_acquires_leave_nothing_on_mariadb() {
    let server = MysqlServer::start();
    storm(&server.place("shop")).await;
    let left = "SELECT COUNT(*) FROM shop.fencelock WHERE owner IS NOT NULL OR waiting > 0";
    assert_eq!(server.sql(left), "0", "of nobody");
    assert_eq!(server.open_transactions("shop"), 0);
}
