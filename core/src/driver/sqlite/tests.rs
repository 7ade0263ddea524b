//! Tests of cases that only show from inside: a full disk, rows and sockets that are left behind.

use std::fs;
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use super::*;
use crate::error::Code;
use crate::port::{
    Action, Applied, BoxFuture, Family, Instant, Kind, Mode, Outcome, OwnerId, Runtime, Take,
};
use crate::runtime::TokioRuntime;

/// The real platform, its wall clock some time ahead.
struct Ahead(TokioRuntime, Duration);

impl Runtime for Ahead {
    fn now(&self) -> Instant {
        self.0.now()
    }
    fn wall(&self) -> u64 {
        self.0.wall() + self.1.as_micros() as u64
    }
    fn sleep_until(&self, at: Instant) -> BoxFuture<'static, ()> {
        self.0.sleep_until(at)
    }
    fn spawn(&self, task: BoxFuture<'static, ()>) {
        self.0.spawn(task);
    }
    fn random(&self, bytes: &mut [u8]) {
        self.0.random(bytes);
    }
}

/// A directory of its own, gone afterwards.
struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("fl-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    async fn store(&self, ahead: Duration) -> SqliteStore {
        let runtime = Arc::new(Ahead(TokioRuntime::current().unwrap(), ahead));
        SqliteStore::open(&self.0.join("locks.db"), &Options::default(), runtime).await.unwrap()
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn take(store: &SqliteStore, name: &str, info: &str) -> Step {
    Step {
        lock: LockKey::new(name),
        owner: OwnerId::draw(&*store.runtime),
        kind: Kind::Mutex,
        action: Action::Take(Take {
            mode: Mode::Exclusive,
            limit: 1,
            permits: 1,
            ttl: Duration::from_secs(1),
            wait: false,
            block: 1,
            floor: crate::Token::default(),
            info: info.into(),
            vote: None,
        }),
    }
}

#[tokio::test]
async fn a_full_disk_refuses_the_whole_transaction_and_the_next_one_works() {
    let directory = Directory::new("full");
    let store = directory.store(Duration::ZERO).await;
    store
        .with(|open| {
            let connection = &open.current()?.connection;
            let pages: i64 = connection.query_row("PRAGMA page_count", [], |row| row.get(0))?;
            let limit = format!("PRAGMA max_page_count = {}", pages + 2);
            Ok(connection.query_row(&limit, [], |_| Ok(()))?)
        })
        .unwrap_or_else(|fault| panic!("{fault:?}"));
    let small = take(&store, "small", "");
    let large = take(&store, "large", &"x".repeat(1 << 20));
    for answer in store.step(&[small.clone(), large]).await {
        let failure = answer.unwrap_err();
        assert_eq!((failure.applied, failure.error.code()), (Applied::No, Code::Unavailable));
        assert!(failure.error.message().contains("disk is full"));
    }
    assert!(store.names("").await.unwrap().is_empty());
    assert!(matches!(store.step(&[small]).await.remove(0), Ok(Outcome::Granted { .. })));
}

#[tokio::test]
async fn the_log_begins_anew_although_somebody_writes_without_a_pause() {
    let directory = Directory::new("log");
    let store = directory.store(Duration::ZERO).await;
    let other = directory.store(Duration::ZERO).await;
    let (mut longest, mut anew) = (0, 0);
    // Each step adds a page: were the log not written back, it would only grow.
    for _ in 0..200_000 {
        for store in [&store, &other] {
            let take = take(store, "hot", "");
            let free = Step { action: Action::Free { open: false }, ..take.clone() };
            store.step(&[take, free]).await;
        }
        let pages = store.with(|open| Ok(open.current()?.log.load(Relaxed))).unwrap();
        if pages < longest {
            (longest, anew) = (0, anew + 1);
        }
        if anew == 2 {
            return;
        }
        longest = longest.max(pages);
    }
    panic!("the log has {longest} pages and began anew {anew} times");
}

/// As commands are that take a name of their own each: none makes many steps, and none looks at all rows.
#[tokio::test]
async fn names_of_short_lived_clients_are_swept_out() {
    let directory = Directory::new("short");
    let mut most = 0;
    for at in 0..200 {
        // Long enough after the one before for its name to be forgotten.
        let store = directory.store(Duration::from_secs(30 * at)).await;
        if at == 0 {
            // More than are looked at in one go, and held all the time.
            let hold = |at| {
                let mut step = take(&store, &format!("held{at}"), "");
                let Action::Take(take) = &mut step.action else { unreachable!("it takes") };
                take.ttl = Duration::from_hours(24);
                step
            };
            let steps: Vec<_> = (0..400).map(hold).collect();
            assert!(store.step(&steps).await.iter().all(Result::is_ok));
        }
        let name = format!("new{at}");
        assert!(store.step(&[take(&store, &name, "")]).await.iter().all(Result::is_ok));
        most = most.max(store.names("new").await.unwrap().len());
        assert_eq!(store.names("held").await.unwrap().len(), 400);
        store.close().await;
    }
    assert!(most < 10, "{most} names are remembered, of which one is used");
}

#[tokio::test]
async fn sockets_of_dead_clients_are_cleared_away_and_nothing_else() {
    let directory = Directory::new("stale");
    let path = |name: &str| directory.0.join(name);
    let stale = path("locks.db.fencelock-0123456789abcdef.sock");
    let others = ["other.db.fencelock-0123456789abcdef.sock", "locks.db.fencelock-xyz.sock"];
    drop(UnixDatagram::bind(&stale).unwrap());
    for other in others {
        drop(UnixDatagram::bind(path(other)).unwrap());
    }
    fs::write(path("locks.db.fencelock-fedcba9876543210.sock"), "a file").unwrap();
    let _living = UnixDatagram::bind(path("locks.db.fencelock-aaaaaaaaaaaaaaaa.sock")).unwrap();
    let young = directory.store(Duration::ZERO).await;
    young.listen(Arc::new(|_| {})).await.unwrap();
    assert!(stale.exists());
    let later = directory.store(Duration::from_secs(60)).await;
    later.listen(Arc::new(|_| {})).await.unwrap();
    assert!(!stale.exists());
    drop((young, later));
    // The two names that are not ours, the file, the living one and the database.
    let mut left: Vec<_> = fs::read_dir(&directory.0).unwrap().map(|e| e.unwrap().path()).collect();
    left.retain(|path| path.extension().is_some_and(|extension| extension == "sock"));
    assert_eq!(left.len(), 4, "{left:?}");
}

#[tokio::test]
async fn a_client_that_is_not_there_is_unreachable_and_one_that_cannot_be_told_is_not() {
    let directory = Directory::new("reach");
    let store = directory.store(Duration::ZERO).await;
    store.listen(Arc::new(|_| {})).await.unwrap();
    let channel = store.notices.channel();
    assert!(!channel.contains('/') && store.notices.reachable(&channel));
    store.close().await;
    assert!(!store.notices.reachable(&channel));
    assert!(!store.notices.reachable("/nowhere/fencelock-0123456789abcdef.sock"));
    for unknown in ["", "somewhere", "../locks.db.fencelock-0123456789abcdef.sock"] {
        assert!(store.notices.reachable(unknown), "{unknown}");
    }
}

/// Nothing is written, and whoever asks again once the clock is right is granted.
#[tokio::test]
async fn a_clock_beyond_all_tokens_is_an_error_that_says_so() {
    let directory = Directory::new("numbers");
    let late = directory.store(Duration::from_secs(300 * 365 * 24 * 3600)).await;
    let change = Change {
        key: CellKey::new(Family::Version, "orders"),
        expected: None,
        writer: OwnerId::draw(&*late.runtime),
        value: Some("1".into()),
        keep: None,
    };
    let pair = [take(&late, "orders", ""), take(&late, "bills", "")];
    let mut failures = late.step(&pair).await;
    failures.extend(late.step_all(&pair).await);
    assert_eq!(failures.len(), 4);
    failures.push(Err(late.compare_and_set(&change).await.unwrap_err()));
    for failure in failures {
        let failure = failure.unwrap_err();
        assert_eq!((failure.applied, failure.error.code()), (Applied::No, Code::Conflict));
        assert!(failure.error.message().contains("beyond the year 2255"), "{}", failure.error);
    }
    let right = directory.store(Duration::ZERO).await;
    assert!(matches!(right.step(&pair[..1]).await.remove(0), Ok(Outcome::Granted { .. })));
    assert!(matches!(right.compare_and_set(&change).await, Ok(Swap::Done { .. })));
}
