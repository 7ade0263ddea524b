//! Locks of other libraries' tables and fencelock's, on one database.

use std::path::Path;
use std::time::{Duration, Instant};

use fencelock::Client;
use fencelock_peers::Family;

use crate::database::{DatabaseServer, connect, holds};
use crate::other_library::OtherLibrary;
use crate::session_store::{PATIENCE, waiting};

/// The lease of the library's client that dies with it.
const LEASE: Duration = Duration::from_secs(5);
/// The lease of the other one. Both libraries count it from before they ask the database, which a loaded machine answers late.
const LONG: Duration = Duration::from_secs(60);

/// Two clients of the library of this dialect, over JDBC: the second one is to die. `None`: the machine has no Java.
pub fn library(actor: &Path, dialect: &str, jdbc: &str) -> Option<[OtherLibrary; 2]> {
    let library = if dialect == "shedlock" { "shedlock" } else { "spring-jdbc" };
    let start = |lease| OtherLibrary::start_with(actor, Family::Java, library, jdbc, lease);
    Some([start(LONG)?, start(LEASE)?])
}

/// A client of the locks behind this URL, as the library keeps them.
pub async fn client(url: &str, dialect: &str) -> Client {
    let mark = if url.contains('?') { '&' } else { '?' };
    connect(&format!("{url}{mark}dialect={dialect}")).await
}

/// They exclude each other on the database behind this URL, both ways, also after a lease that nobody renews and a killed holder.
pub async fn exclude_each_other(
    server: &impl DatabaseServer,
    url: &str,
    dialect: &str,
    [mut other, mut mortal]: [OtherLibrary; 2],
) {
    let ours = &client(url, dialect).await;
    let beside = client(url, dialect).await;
    let theirs = other.take("x", 5000, "exclusive").expect("it is free");
    assert!(ours.lock("x").try_acquire().await.unwrap().is_none());
    let seen = ours.lock("x").inspect().await.unwrap();
    assert!(seen.holders[0].token.is_none() && seen.holders[0].left.is_some(), "{seen:?}");
    let next = tokio::spawn(ours.lock("x").acquire_within(PATIENCE));
    waiting(&beside, "x", 1).await;
    other.release(&theirs);
    let guard = next.await.unwrap().expect("it is served");
    assert!(other.take("x", 0, "exclusive").is_none());
    other.send_take("x", 20_000, "exclusive");
    // Among our clients the queue and the tokens go on; the library comes when nobody of ours is there. (A waiter of the client that
    // holds asks the table only when the lock is free.)
    let second = tokio::spawn(beside.lock("x").acquire_within(PATIENCE));
    waiting(ours, "x", 1).await;
    let first = guard.token();
    guard.release().await.check().unwrap();
    let guard = second.await.unwrap().expect("it is served");
    assert!(guard.token() > first);
    guard.release().await.check().unwrap();
    let theirs = other.answer();
    assert!(!theirs.is_null(), "it is served");
    assert!(ours.lock("x").try_acquire().await.unwrap().is_none());
    other.release(&theirs);

    tokio::task::block_in_place(|| count_together(server, ours, &mut other));

    // A lease that nobody renews ends for the library too.
    let guard = ours.lock("x").ttl(Duration::from_secs(1)).renew(false).acquire().await.unwrap();
    let theirs = other.take("x", 10_000, "exclusive").expect("the lease ends");
    assert!(!guard.is_held());
    drop(guard);
    assert!(!holds(ours, "x").await, "what is late takes nothing away");
    other.release(&theirs);

    // It dies with the lock, which is free when its lease has ended.
    mortal.take("x", 5000, "exclusive").expect("it is free");
    let killed = Instant::now();
    mortal.kill();
    let guard = ours.lock("x").acquire_within(PATIENCE).await.expect("its lease ends");
    assert!(killed.elapsed() > LEASE / 2, "its lease was not awaited: {:?}", killed.elapsed());
    guard.release().await.check().unwrap();
}

/// Both add to a number that is read and written in two steps. None is lost.
fn count_together(server: &impl DatabaseServer, ours: &Client, other: &mut OtherLibrary) {
    const EACH: u32 = 40;
    server.sql("CREATE SCHEMA counting; CREATE TABLE counting.counter (n int); INSERT INTO counting.counter VALUES (0)");
    let add = || {
        let n: u32 = server.sql("SELECT n FROM counting.counter").parse().unwrap();
        server.sql(&format!("UPDATE counting.counter SET n = {}", n + 1));
    };
    let (lock, handle) = (ours.lock("n"), tokio::runtime::Handle::current());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..EACH {
                let guard = handle.block_on(lock.acquire_within(PATIENCE)).expect("it is served");
                add();
                handle.block_on(guard.release()).check().unwrap();
            }
        });
        for _ in 0..EACH {
            let theirs = other.take("n", 20_000, "exclusive").expect("it is served");
            add();
            other.release(&theirs);
        }
    });
    assert_eq!(server.sql("SELECT n FROM counting.counter"), (2 * EACH).to_string());
}
