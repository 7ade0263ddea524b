//! Thousands at one lock: who waits, holds and leaves is served in parts, and what is told is so.
//!
//! With `FENCELOCK_FULL=1` ten thousand on every store.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fencelock::driver::memory::{Memory, MemoryStore};
use fencelock::driver::redis::RedisStore;
use fencelock::driver::sqlite::SqliteStore;
use fencelock::options::Options;
use fencelock::port::{
    Action, Answer, Kind, LeaseStore, LockKey, Mode, Notice, Outcome, OwnerId, RuntimeHandle, Step,
    Take,
};
use fencelock::runtime::TokioRuntime;
use fencelock_tests::bare::taking;
use fencelock_tests::in_full;
use fencelock_tests::servers::RedisServer;

/// No lease ends in these tests.
const TTL: Duration = Duration::from_secs(3600);
/// Steps sent at once.
const BATCH: usize = 250;
/// In full.
const ALL: usize = 10_000;

/// One client of a store, and what it was told.
struct Crowd<S> {
    store: S,
    runtime: RuntimeHandle,
    lock: LockKey,
    kind: Kind,
    heard: Arc<Mutex<Vec<Notice>>>,
}

impl<S: LeaseStore> Crowd<S> {
    async fn at(store: S, lock: &str, kind: Kind) -> Self {
        let runtime: RuntimeHandle =
            Arc::new(TokioRuntime::current().expect("called in a runtime"));
        let heard: Arc<Mutex<Vec<Notice>>> = Arc::default();
        let sink = heard.clone();
        let listens = store.listen(Arc::new(move |notice| sink.lock().unwrap().push(notice)));
        listens.await.expect("the store listens");
        Self { store, runtime, lock: LockKey::new(lock), kind, heard }
    }

    fn owners(&self, count: usize) -> Vec<OwnerId> {
        (0..count).map(|_| OwnerId::draw(&*self.runtime)).collect()
    }

    /// The same step for all of these.
    async fn all(&self, owners: &[OwnerId], action: &Action) -> Vec<Outcome> {
        let mut outcomes = Vec::new();
        for owners in owners.chunks(BATCH) {
            let step = |&owner: &OwnerId| Step {
                lock: self.lock.clone(),
                owner,
                kind: self.kind,
                action: action.clone(),
            };
            let batch: Vec<_> = owners.iter().map(step).collect();
            let answers: Vec<Answer> = self.store.step(&batch).await;
            outcomes.extend(answers.into_iter().map(|answer| answer.expect("the store answers")));
        }
        outcomes
    }

    async fn one(&self, owner: OwnerId, action: &Action) -> Outcome {
        self.all(&[owner], action).await.remove(0)
    }

    /// Looks after all who wait until each of them holds, as their clients would: who was served is renewed, whose ticket has ended
    /// asks anew. Answers who was told of a grant meanwhile.
    async fn serve(&self, waiting: &[OwnerId], take: &Action) -> BTreeSet<OwnerId> {
        let mut left = waiting.to_vec();
        for _ in 0..60 {
            let mut next = Vec::new();
            for owners in left.chunks(BATCH) {
                let looked = self.all(owners, &Action::Refresh { ttl: TTL }).await;
                let (gone, looked): (Vec<_>, Vec<_>) = owners
                    .iter()
                    .copied()
                    .zip(looked)
                    .partition(|(_, outcome)| *outcome == Outcome::Gone);
                let gone: Vec<_> = gone.into_iter().map(|(owner, _)| owner).collect();
                let again = gone.iter().copied().zip(self.all(&gone, take).await);
                let waiting =
                    looked.into_iter().chain(again).filter(|(_, outcome)| !granted(outcome));
                next.extend(waiting.map(|(owner, _)| owner));
            }
            left = next;
            if left.is_empty() {
                let told = self.heard.lock().unwrap();
                let granted = told.iter().filter_map(|notice| match notice {
                    Notice::Granted { owner, .. } => Some(*owner),
                    _ => None,
                });
                return granted.collect();
            }
        }
        panic!("{} of {} do not hold in the end", left.len(), waiting.len());
    }

    async fn holders(&self) -> Vec<Mode> {
        let look = self.one(OwnerId::draw(&*self.runtime), &Action::Read).await;
        let Outcome::State(state) = look else { panic!("{look:?}") };
        state.holders.iter().map(|holder| holder.mode).collect()
    }
}

fn granted(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Granted { .. })
}

fn take(mode: Mode, limit: u32) -> Action {
    Action::Take(Take { ttl: TTL, ..taking(mode, limit, true) })
}

const FREE: Action = Action::Free { open: false };

/// A release lets thousands of readers in at once, and no writer beside them, until the last has left.
async fn readers<S: LeaseStore>(store: S, count: usize) {
    let crowd = Crowd::at(store, "readers", Kind::ReadWrite).await;
    let [first, last] = crowd.owners(2)[..] else { panic!("there are two") };
    assert!(matches!(crowd.one(first, &take(Mode::Write, 1)).await, Outcome::Granted { .. }));
    let readers = crowd.owners(count);
    let waiting = crowd.all(&readers, &take(Mode::Read, 1)).await;
    assert!(waiting.iter().all(|outcome| matches!(outcome, Outcome::Queued { .. })));
    assert!(matches!(crowd.one(last, &take(Mode::Write, 1)).await, Outcome::Queued { .. }));
    assert_eq!(crowd.one(first, &FREE).await, Outcome::Freed);
    let told = crowd.serve(&readers, &take(Mode::Read, 1)).await;
    assert!(!told.is_empty() && !told.contains(&last), "a writer beside readers");
    let holders = crowd.holders().await;
    assert!(holders.iter().all(|mode| *mode == Mode::Read), "a writer beside readers");
    assert_eq!(holders.len(), count, "all that were told hold");
    let renewed = crowd.all(&readers, &Action::Renew { ttl: TTL }).await;
    assert!(renewed.iter().all(|outcome| matches!(outcome, Outcome::Granted { .. })));
    let freed = crowd.all(&readers, &FREE).await;
    assert!(freed.iter().all(|outcome| *outcome == Outcome::Freed));
    crowd.serve(&[last], &take(Mode::Write, 1)).await;
    assert_eq!(crowd.holders().await, [Mode::Write]);
}

/// Of thousands who want to be alone one is served, and each can leave from where it stands.
async fn writers<S: LeaseStore>(store: S, count: usize) {
    let crowd = Crowd::at(store, "writers", Kind::Mutex).await;
    let all = crowd.owners(count);
    let waiting = crowd.all(&all, &take(Mode::Exclusive, 1)).await;
    assert!(matches!(waiting[0], Outcome::Granted { .. }));
    let leave = Action::Leave { tombstone: Some(Duration::from_secs(60)) };
    let left = crowd.all(&all[1..], &leave).await;
    assert!(left.iter().all(|outcome| matches!(outcome, Outcome::Freed | Outcome::Gone)));
    assert_eq!(crowd.holders().await, [Mode::Exclusive]);
    assert_eq!(crowd.one(all[0], &FREE).await, Outcome::Freed);
    // Thousands of tombstones are in nobody's way.
    let never = crowd.owners(count);
    assert!(crowd.all(&never, &leave).await.iter().all(|outcome| *outcome == Outcome::Gone));
    assert_eq!(
        crowd.one(never[0], &take(Mode::Exclusive, 1)).await,
        Outcome::Gone,
        "it has a tombstone"
    );
    let [next] = crowd.owners(1)[..] else { panic!("there is one") };
    assert!(matches!(crowd.one(next, &take(Mode::Exclusive, 1)).await, Outcome::Granted { .. }));
}

/// So many permits, and no more.
async fn permits<S: LeaseStore>(store: S, count: usize) {
    let crowd = Crowd::at(store, "permits", Kind::Semaphore).await;
    let (limit, all) = (u32::try_from(count).expect("few"), crowd.owners(count));
    let granted = crowd.all(&all, &take(Mode::Permit, limit)).await;
    assert!(granted.iter().all(|outcome| matches!(outcome, Outcome::Granted { .. })));
    let [more] = crowd.owners(1)[..] else { panic!("there is one") };
    assert!(matches!(crowd.one(more, &take(Mode::Permit, limit)).await, Outcome::Queued { .. }));
    let freed = crowd.all(&all, &FREE).await;
    assert!(freed.iter().all(|outcome| *outcome == Outcome::Freed));
    crowd.serve(&[more], &take(Mode::Permit, limit)).await;
    assert_eq!(crowd.holders().await, [Mode::Permit]);
}

/// Mutexes taken as one.
async fn several<S: LeaseStore>(store: S, count: usize) {
    let crowd = Crowd::at(store, "several", Kind::Mutex).await;
    let owners = crowd.owners(count).into_iter().enumerate();
    let steps: Vec<_> = owners
        .map(|(number, owner)| {
            let lock = LockKey::new(format!("several:{number}"));
            Step {
                lock,
                owner,
                kind: Kind::Mutex,
                action: Action::Take(taking(Mode::Exclusive, 1, false)),
            }
        })
        .collect();
    let answers = crowd.store.step_all(&steps).await;
    assert!(answers.iter().all(|answer| matches!(answer, Ok(Outcome::Granted { .. }))));
}

/// All of them on one store, which `connect` makes a client of. In a short run there are so many.
macro_rules! crowds {
    ($store:ident: $few:expr, $connect:expr) => {
        mod $store {
            use super::*;

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn a_release_beside_thousands_of_readers_lets_no_writer_in() {
                let (store, _place) = $connect.await;
                readers(store, if in_full() { ALL } else { $few }).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn thousands_wait_and_leave() {
                let (store, _place) = $connect.await;
                writers(store, if in_full() { ALL } else { $few }).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn thousands_of_permits_are_counted() {
                let (store, _place) = $connect.await;
                permits(store, if in_full() { ALL } else { $few }).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn thousands_are_taken_as_one() {
                let (store, _place) = $connect.await;
                several(store, if in_full() { ALL } else { $few }).await;
            }
        }
    };
}

fn runtime() -> RuntimeHandle {
    Arc::new(TokioRuntime::current().expect("called in a runtime"))
}

fn in_memory() -> impl Future<Output = (MemoryStore, ())> {
    std::future::ready((Memory::new().store(runtime()), ()))
}

async fn in_a_file() -> (SqliteStore, tempfile::TempDir) {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let (file, options) = (folder.path().join("locks.db"), Options::default());
    let store = SqliteStore::open(&file, &options, runtime()).await;
    (store.expect("the file can be opened"), folder)
}

async fn on_a_server() -> (RedisStore, RedisServer) {
    let server = RedisServer::start();
    let mut options = Options::default();
    options.timeout = Duration::from_secs(60);
    let store = RedisStore::connect(&server.url(), &options, runtime()).await;
    (store.expect("the server takes clients"), server)
}

/// A renewal or a release of one among thousands makes the server write a few of those who hold, not all.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_step_of_one_among_thousands_writes_little() {
    const STEPS: usize = 200;
    const MOST: u64 = 10_000;
    for (kind, mode) in [(Kind::ReadWrite, Mode::Read), (Kind::Semaphore, Mode::Permit)] {
        let server = RedisServer::start_with(&["--appendonly", "yes"]);
        let mut options = Options::default();
        options.timeout = Duration::from_secs(60);
        let store = RedisStore::connect(&server.url(), &options, runtime()).await;
        let crowd = Crowd::at(store.expect("the server takes clients"), "crowd", kind).await;
        let (all, mut admin) = (crowd.owners(4_000), server.admin());
        let granted = crowd.all(&all, &take(mode, 10_000)).await;
        assert!(granted.iter().all(|outcome| matches!(outcome, Outcome::Granted { .. })));
        let mut written = || -> u64 {
            let info: ::redis::InfoDict =
                ::redis::cmd("INFO").arg("persistence").query(&mut admin).unwrap();
            info.get("aof_current_size").expect("the server tells")
        };
        for action in [Action::Renew { ttl: 2 * TTL }, FREE] {
            let before = written();
            let outcomes = crowd.all(&all[..STEPS], &action).await;
            assert!(!outcomes.contains(&Outcome::Gone), "all of them hold");
            let each = (written() - before) / STEPS as u64;
            assert!(each < MOST, "{kind}: {each} bytes for one {action:?}");
        }
        assert_eq!(crowd.holders().await.len(), all.len() - STEPS);
    }
}

crowds!(memory: 10_000, in_memory());
crowds!(sqlite: 500, in_a_file());
// More than one command of a script can carry.
crowds!(redis: 4_500, on_a_server());
