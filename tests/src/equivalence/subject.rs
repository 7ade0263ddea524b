//! The stores under test, and how time passes for them.

use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fencelock::driver::memory::{Memory, MemoryStore};
use fencelock::driver::redis::RedisStore;
use fencelock::driver::sqlite::SqliteStore;
use fencelock::options::Options;
use fencelock::port::{
    Action, BoxFuture, Instant, Kind, LeaseStore, LockKey, OwnerId, Runtime, Step,
};
use fencelock::runtime::TokioRuntime;
use tempfile::TempDir;
use url::Url;

use super::way::{Direct, Way};
use crate::stopped_clock::{CLOCK, StoppedClock};

/// Something that claims to be a lease store.
#[allow(async_fn_in_trait)] // Runs on the test's own thread.
pub trait Subject {
    /// The store of one client.
    type Store: LeaseStore;

    /// One more client.
    async fn client(&self) -> Self::Store;

    /// The store's clock, in microseconds.
    fn now(&self) -> u64;

    /// Whether that clock runs by itself.
    fn runs(&self) -> bool {
        false
    }

    /// Lets time pass.
    async fn pass<'a>(&'a self, clients: impl Iterator<Item = &'a Self::Store>, time: Duration);

    /// Whether what it keeps ends in real time too, although its clock stands.
    fn minds_stalls(&self) -> bool {
        true
    }

    /// Whether the versions of its cells are numbers of its own instead of its clock's.
    fn numbers_versions(&self) -> bool {
        false
    }

    /// Whether it knows of a client that has hung up.
    fn tells_who_listens(&self) -> bool {
        true
    }

    /// Deletes the lock from outside; `false` if nobody can.
    fn vanish(&self, _lock: &LockKey) -> bool {
        false
    }

    /// Ends a client; afterwards the store knows that it is gone.
    async fn hang_up(&self, store: Self::Store) {
        store.close().await;
    }

    /// Afterwards everything that was sent to the client has arrived; `arrived` says whether what should come has.
    async fn await_notices(&self, _store: &Self::Store, _arrived: impl Fn() -> bool) {}

    /// Whether a client may hear once what one batch tells it twice in the same words.
    fn merges_notices(&self) -> bool {
        false
    }
}

/// Since when a server keeps its data.
const MARK: &str = "fencelock:born";
/// Where a clock that the test moves begins.
pub const BEGIN: u64 = 1_700_000_000_000_000;

/// The platform, but for the wall clock.
pub(super) struct Stopped {
    rest: TokioRuntime,
    wall: AtomicU64,
}

impl Stopped {
    pub(super) fn new() -> Arc<Self> {
        let rest = TokioRuntime::current().expect("called in a runtime");
        Arc::new(Self { rest, wall: AtomicU64::new(BEGIN) })
    }

    pub(super) fn pass(&self, time: Duration) {
        self.wall.fetch_add(time.as_micros() as u64, Ordering::Relaxed);
    }
}

impl Runtime for Stopped {
    fn now(&self) -> Instant {
        self.rest.now()
    }
    fn wall(&self) -> u64 {
        self.wall.load(Ordering::Relaxed)
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

/// The store in memory.
pub struct MemorySubject {
    memory: Memory,
    runtime: Arc<Stopped>,
}

impl MemorySubject {
    /// An empty store.
    pub fn new() -> Self {
        Self { memory: Memory::new(), runtime: Stopped::new() }
    }
}

impl Default for MemorySubject {
    fn default() -> Self {
        Self::new()
    }
}

impl Subject for MemorySubject {
    type Store = MemoryStore;

    async fn client(&self) -> MemoryStore {
        self.memory.store(self.runtime.clone())
    }

    fn now(&self) -> u64 {
        self.runtime.wall()
    }

    async fn pass<'a>(&'a self, _: impl Iterator<Item = &'a MemoryStore>, time: Duration) {
        self.runtime.pass(time);
    }
}

/// A new SQLite file.
pub struct SqliteSubject {
    folder: TempDir,
    runtime: Arc<Stopped>,
}

impl SqliteSubject {
    /// An empty store.
    pub fn new() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        Self { folder, runtime: Stopped::new() }
    }
}

impl Default for SqliteSubject {
    fn default() -> Self {
        Self::new()
    }
}

impl Subject for SqliteSubject {
    type Store = SqliteStore;

    async fn client(&self) -> SqliteStore {
        let path = self.folder.path().join("locks.db");
        let store = SqliteStore::open(&path, &Options::default(), self.runtime.clone()).await;
        store.expect("a new file can be made")
    }

    fn now(&self) -> u64 {
        self.runtime.wall()
    }

    async fn pass<'a>(&'a self, _: impl Iterator<Item = &'a SqliteStore>, time: Duration) {
        self.runtime.pass(time);
    }

    async fn await_notices(&self, _: &SqliteStore, arrived: impl Fn() -> bool) {
        await_arrival(arrived).await;
    }
}

/// Waits until `arrived`, for a limited time; a notice that should not come shows at the next look.
pub async fn await_arrival(arrived: impl Fn() -> bool) {
    let give_up = std::time::Instant::now() + Duration::from_secs(10);
    while !arrived() && std::time::Instant::now() < give_up {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// A Redis server whose scripts read a clock that the test moves, and whose keys' ends move with it.
pub struct RedisSubject<W: Way = Direct> {
    rest: RunningRedis<W>,
    now: AtomicU64,
    clock: StoppedClock,
}

impl RedisSubject {
    /// An empty server, over the core's own connections.
    pub fn new(url: Url) -> Self {
        Self::over(url)
    }
}

impl<W: Way> RedisSubject<W> {
    /// An empty server, over connections of this kind.
    pub fn over(url: Url) -> Self {
        let rest = RunningRedis::over(url);
        rest.mark(BEGIN);
        let clock = StoppedClock::before(&rest.url, BEGIN);
        Self { rest, now: BEGIN.into(), clock }
    }
}

impl<W: Way> Subject for RedisSubject<W> {
    type Store = W::Store;

    async fn client(&self) -> W::Store {
        W::connect(&self.clock.url()).await
    }

    fn now(&self) -> u64 {
        self.now.load(Ordering::Relaxed)
    }

    async fn pass<'a>(&'a self, _: impl Iterator<Item = &'a W::Store>, time: Duration) {
        self.now.fetch_add(time.as_micros() as u64, Ordering::Relaxed);
        self.rest.age(time);
        self.clock.set(self.now());
    }

    fn vanish(&self, lock: &LockKey) -> bool {
        self.rest.vanish(lock)
    }

    async fn hang_up(&self, store: W::Store) {
        self.rest.hang_up(store).await;
    }

    async fn await_notices(&self, store: &W::Store, arrived: impl Fn() -> bool) {
        self.rest.await_notices(store, arrived).await;
    }
}

/// A Redis server with its own clock.
pub struct RunningRedis<W: Way = Direct> {
    url: Url,
    admin: std::sync::Mutex<redis::Connection>,
    way: PhantomData<fn() -> W>,
}

impl RunningRedis {
    /// The server, emptied, over the core's own connections.
    pub fn new(url: Url) -> Self {
        Self::over(url)
    }
}

impl<W: Way> RunningRedis<W> {
    /// The server, emptied, over connections of this kind.
    pub fn over(url: Url) -> Self {
        let client = redis::Client::open(url.clone()).expect("this is a Redis URL");
        let mut admin = client.get_connection().expect("the server takes connections");
        redis::cmd("FLUSHDB").exec(&mut admin).expect("the server can be emptied");
        Self { url, admin: admin.into(), way: PhantomData }
    }

    fn ask<T: redis::FromRedisValue>(&self, command: &mut redis::Cmd) -> T {
        let mut admin = self.admin.lock().expect("no test has failed here");
        command.query(&mut *admin).expect("the server answers")
    }

    /// The run of the server that is under way has kept its data since this moment: it may vote on a quorum.
    fn mark(&self, born: u64) {
        let info: String = self.ask(redis::cmd("INFO").arg("server"));
        let run = info.lines().find_map(|line| line.strip_prefix("run_id:"));
        let mark = format!("{} {born}", run.expect("every run has an id").trim());
        self.ask::<()>(redis::cmd("SET").arg(MARK).arg(mark));
    }

    /// Brings the end of every key nearer.
    fn age(&self, time: Duration) {
        let time = time.as_millis() as i64;
        for key in self.ask::<Vec<String>>(redis::cmd("KEYS").arg("*")) {
            let left: i64 = self.ask(redis::cmd("PTTL").arg(&key));
            if left == -1 {
                let endless = ["}:version:", "}:job:", "/permits", MARK, CLOCK];
                assert!(endless.iter().any(|part| key.contains(part)), "{key} has no end");
                continue;
            }
            let (verb, rest) = if left > time { ("PEXPIRE", left - time) } else { ("PEXPIRE", -1) };
            self.ask::<i64>(redis::cmd(verb).arg(&key).arg(rest));
        }
    }

    fn listeners(&self) -> usize {
        self.ask::<Vec<String>>(redis::cmd("PUBSUB").arg("CHANNELS").arg("fencelock:c:*")).len()
    }
}

impl<W: Way> Subject for RunningRedis<W> {
    type Store = W::Store;

    async fn client(&self) -> W::Store {
        W::connect(&self.url).await
    }

    fn now(&self) -> u64 {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is later than 1970");
        now.as_micros() as u64
    }

    fn runs(&self) -> bool {
        true
    }

    async fn pass<'a>(&'a self, _: impl Iterator<Item = &'a W::Store>, time: Duration) {
        tokio::time::sleep(time).await;
    }

    fn vanish(&self, lock: &LockKey) -> bool {
        self.ask::<i64>(redis::cmd("DEL").arg(RedisStore::holder_key(lock)));
        true
    }

    async fn hang_up(&self, store: W::Store) {
        let before = self.listeners();
        store.close().await;
        drop(store);
        let give_up = std::time::Instant::now() + Duration::from_secs(10);
        while self.listeners() == before {
            assert!(std::time::Instant::now() < give_up, "a closed store keeps listening");
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    async fn await_notices(&self, store: &W::Store, _: impl Fn() -> bool) {
        // A connection's pushes and replies come in order.
        let nothing = Step {
            lock: LockKey::new("nothing"),
            owner: OwnerId::parse(&"0".repeat(32)).expect("32 hexadecimal digits"),
            kind: Kind::Mutex,
            action: Action::Read,
        };
        store.step(&[nothing]).await[0].as_ref().expect("the server answers");
    }
}
