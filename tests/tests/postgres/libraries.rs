//! Locks of other libraries' tables and fencelock's, on a real PostgreSQL.

use std::path::Path;
use std::time::{Duration, Instant};

use fencelock::mutation::{Mutant, activate};
use fencelock::{Client, Code};
use fencelock_peers::Family;
use fencelock_tests::database::{connect, holds};
use fencelock_tests::other_library::OtherLibrary;
use fencelock_tests::postgres::PostgresServer;
use fencelock_tests::session_store::{PATIENCE, waiting};
use futures_util::future::join;
use tokio_postgres::NoTls;

/// As the manuals of the libraries have their tables made.
const TABLES: &str = "CREATE TABLE shedlock (name VARCHAR(64) NOT NULL, lock_until TIMESTAMP NOT NULL, locked_at TIMESTAMP NOT NULL,
        locked_by VARCHAR(255) NOT NULL, PRIMARY KEY (name));
    CREATE TABLE int_lock (lock_key CHAR(36) NOT NULL, region VARCHAR(100) NOT NULL, client_id CHAR(36),
        created_date TIMESTAMP NOT NULL, expired_after TIMESTAMP NOT NULL, CONSTRAINT int_lock_pk PRIMARY KEY (lock_key, region));";
/// What the library's client is told for its lease.
const LEASE: Duration = Duration::from_secs(5);

fn start() -> PostgresServer {
    let server = PostgresServer::start();
    server.sql(&format!("{}; {TABLES}", fencelock::driver::postgres::schema()));
    server
}

async fn client(server: &PostgresServer, dialect: &str) -> Client {
    connect(&format!("{}?dialect={dialect}", server.url("postgres"))).await
}

fn other(server: &PostgresServer, library: &str) -> Option<OtherLibrary> {
    let url = format!("jdbc:postgresql://127.0.0.1:{}/postgres?user=postgres", server.port());
    let actor = Path::new(env!("CARGO_BIN_EXE_actor"));
    if library == "shedlock" {
        OtherLibrary::start(actor, Family::Java, "shedlock", &url)
    } else {
        OtherLibrary::start(actor, Family::Java, "spring-jdbc", &url)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shedlock_and_fencelock_exclude_each_other() {
    let server = start();
    let Some(library) = other(&server, "shedlock") else { return };
    exclude_each_other(&server, "shedlock", library).await;
    // It keeps its rows, and so do we.
    assert_eq!(server.sql("SELECT count(*) FROM shedlock WHERE name IN ('x', 'n')"), "2");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn spring_and_fencelock_exclude_each_other() {
    let server = start();
    let Some(library) = other(&server, "spring") else { return };
    exclude_each_other(&server, "spring", library).await;
    // Both delete the rows of locks that are free; Spring's own begins as ours does, with the warm-up.
    assert_eq!(server.sql("SELECT count(*) FROM int_lock"), "0");
}

async fn exclude_each_other(server: &PostgresServer, dialect: &str, mut other: OtherLibrary) {
    let ours = client(server, dialect).await;
    let theirs = other.take("x", 5000, "exclusive").expect("it is free");
    assert!(ours.lock("x").try_acquire().await.unwrap().is_none());
    let seen = ours.lock("x").inspect().await.unwrap();
    assert!(seen.holders[0].token.is_none() && seen.holders[0].left.is_some(), "{seen:?}");
    let next = tokio::spawn(ours.lock("x").acquire_within(PATIENCE));
    waiting(&ours, "x", 1).await;
    other.release(&theirs);
    let guard = next.await.unwrap().expect("it is served");
    assert!(other.take("x", 0, "exclusive").is_none());
    other.send_take("x", 20_000, "exclusive");
    // Among ours the queue and the tokens go on; the library comes when nobody of ours is there.
    let second = tokio::spawn(ours.lock("x").acquire_within(PATIENCE));
    waiting(&ours, "x", 1).await;
    let first = guard.token();
    guard.release().await.check().unwrap();
    let guard = second.await.unwrap().expect("it is served");
    assert!(guard.token() > first);
    guard.release().await.check().unwrap();
    let theirs = other.answer();
    assert!(!theirs.is_null(), "it is served");
    assert!(ours.lock("x").try_acquire().await.unwrap().is_none());
    other.release(&theirs);

    count_together(server, &ours, &mut other).await;

    // A lease that nobody renews ends for the library too.
    let guard = ours.lock("x").ttl(Duration::from_secs(1)).renew(false).acquire().await.unwrap();
    let theirs = other.take("x", 10_000, "exclusive").expect("the lease ends");
    assert!(!guard.is_held());
    drop(guard);
    assert!(!holds(&ours, "x").await, "what is late takes nothing away");
    other.release(&theirs);

    // It dies with the lock, which is free when its lease has ended.
    other.take("x", 5000, "exclusive").expect("it is free");
    let killed = Instant::now();
    other.kill();
    let guard = ours.lock("x").acquire_within(PATIENCE).await.expect("its lease ends");
    assert!(killed.elapsed() + Duration::from_secs(1) > LEASE, "{:?}", killed.elapsed());
    guard.release().await.check().unwrap();
}

/// Both add to a number that is read and written in two steps. None is lost.
async fn count_together(server: &PostgresServer, ours: &Client, other: &mut OtherLibrary) {
    const EACH: u32 = 40;
    server.sql("CREATE TABLE counter (n int); INSERT INTO counter VALUES (0)");
    let add = || {
        let n: u32 = server.sql("SELECT n FROM counter").parse().unwrap();
        server.sql(&format!("UPDATE counter SET n = {}", n + 1));
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
    assert_eq!(server.sql("SELECT n FROM counter"), (2 * EACH).to_string());
}

/// A clause holds as it is, and does not hold when it is broken.
async fn is_seen(mutant: Mutant, clause: impl AsyncFn(&PostgresServer) -> bool) {
    assert!(clause(&start()).await, "nothing is broken");
    activate(Some(mutant));
    let held = clause(&start()).await;
    activate(None);
    assert!(!held, "{mutant:?} is not seen");
}

#[tokio::test]
async fn a_row_that_was_freed_by_hand_ends_the_hold() {
    is_seen(Mutant::ForeignRowNotBelieved, async |server| {
        let ours = client(server, "shedlock").await;
        let guard = ours.lock("x").ttl(Duration::from_secs(2)).acquire().await.unwrap();
        server.sql("DELETE FROM shedlock WHERE name = 'x'");
        tokio::time::timeout(Duration::from_secs(4), guard.lost()).await.is_ok()
    })
    .await;
}

#[tokio::test]
async fn a_row_stays_locked_from_its_reading_to_its_writing() {
    is_seen(Mutant::ForeignRowNotLocked, async |server| {
        let ours = client(server, "shedlock").await;
        assert!(holds(&ours, "x").await);
        // Somebody is about to take it, and commits when we have asked.
        let (other, connection) =
            tokio_postgres::connect(&server.url("postgres"), NoTls).await.unwrap();
        tokio::spawn(connection);
        let taken = "UPDATE shedlock SET locked_by = 'web-3', lock_until = timezone('utc', clock_timestamp()) + interval '1 hour'";
        other.batch_execute(&format!("BEGIN; {taken}")).await.unwrap();
        let lock = ours.lock("x");
        let commit = async {
            let blocked = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'";
            while server.sql(blocked) == "0" {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            other.batch_execute("COMMIT").await.unwrap();
        };
        let (asked, ()) = join(lock.try_acquire(), commit).await;
        asked.unwrap().is_none()
    })
    .await;
}

#[tokio::test]
async fn what_the_tables_cannot_hold_is_refused() {
    let server = PostgresServer::start();
    server.sql(fencelock::driver::postgres::schema());
    let ours = client(&server, "shedlock").await;
    let missing = ours.lock("x").try_acquire().await.unwrap_err();
    assert_eq!(missing.code(), Code::Unsupported);
    assert!(missing.message().contains("`shedlock`"), "{missing}");
    server.sql("CREATE TABLE shedlock (name VARCHAR(64) PRIMARY KEY, until TIMESTAMP)");
    let shape = ours.lock("x").try_acquire().await.unwrap_err();
    assert_eq!(shape.code(), Code::Conflict, "{shape}");
    let long = ours.lock(&"x".repeat(65)).try_acquire().await.unwrap_err();
    assert!(long.code() == Code::Invalid && long.message().contains("64"), "{long}");
    let reader = ours.read("x").try_acquire().await.unwrap_err();
    assert!(reader.code() == Code::Unsupported && reader.message().contains("dialect"), "{reader}");
}
