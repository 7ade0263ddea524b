//! Locks of other libraries' tables and fencelock's, on a real PostgreSQL.

use std::path::Path;
use std::time::Duration;

use fencelock::{Client, Code};
use fencelock_peers::POSTGRES_TABLES;
use fencelock_tests::database::{connect, holds};
use fencelock_tests::foreign_tables::{self, exclude_each_other};
use fencelock_tests::postgres::PostgresServer;
use futures_util::future::join;
use tokio_postgres::NoTls;

fn start() -> PostgresServer {
    let server = PostgresServer::start();
    server.sql(&format!(
        "{}; {POSTGRES_TABLES}",
        fencelock::driver::postgres::schema("fencelock").unwrap()
    ));
    server
}

async fn client(server: &PostgresServer, dialect: &str) -> Client {
    foreign_tables::client(&server.url("postgres"), dialect).await
}

async fn both_ways(server: &PostgresServer, dialect: &str) -> bool {
    let jdbc = format!("jdbc:postgresql://127.0.0.1:{}/postgres?user=postgres", server.port());
    let actor = Path::new(env!("CARGO_BIN_EXE_actor"));
    let Some(library) = foreign_tables::library(actor, dialect, &jdbc) else { return false };
    exclude_each_other(server, &server.url("postgres"), dialect, library).await;
    true
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shedlock_and_fencelock_exclude_each_other() {
    let server = start();
    if !both_ways(&server, "shedlock").await {
        return;
    }
    // It keeps its rows, and so do we.
    assert_eq!(server.sql("SELECT count(*) FROM shedlock WHERE name IN ('x', 'n')"), "2");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn spring_and_fencelock_exclude_each_other() {
    let server = start();
    if !both_ways(&server, "spring").await {
        return;
    }
    // Both delete the rows of locks that are free; Spring's own begins as ours does, with the warm-up.
    assert_eq!(server.sql("SELECT count(*) FROM int_lock"), "0");
}

#[tokio::test]
async fn a_row_that_was_freed_by_hand_ends_the_hold() {
    let server = start();
    let ours = client(&server, "shedlock").await;
    let guard = ours.lock("x").ttl(Duration::from_secs(2)).acquire().await.unwrap();
    server.sql("DELETE FROM shedlock WHERE name = 'x'");
    assert!(tokio::time::timeout(Duration::from_secs(4), guard.lost()).await.is_ok());
}

#[tokio::test]
async fn a_row_stays_locked_from_its_reading_to_its_writing() {
    let server = start();
    let ours = client(&server, "shedlock").await;
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
    assert!(asked.unwrap().is_none());
}

#[tokio::test]
async fn what_the_tables_cannot_hold_is_refused() {
    let server = PostgresServer::start();
    server.sql(&fencelock::driver::postgres::schema("fencelock").unwrap());
    let ours = client(&server, "shedlock").await;
    let missing = ours.lock("x").try_acquire().await.unwrap_err();
    assert_eq!(missing.code(), Code::Unsupported);
    assert!(missing.message().contains("`shedlock`"), "{missing}");
    server.sql("CREATE TABLE shedlock (name VARCHAR(64) PRIMARY KEY, until TIMESTAMP)");
    let shape = ours.lock("x").try_acquire().await.unwrap_err();
    assert_eq!(shape.code(), Code::Conflict, "{shape}");
    server.sql("DROP TABLE shedlock; CREATE TABLE shedlock (name VARCHAR(64) PRIMARY KEY, lock_until TIMESTAMPTZ, locked_at TIMESTAMPTZ, locked_by TEXT)");
    let zone = ours.lock("x").try_acquire().await.unwrap_err();
    assert!(zone.code() == Code::Conflict && zone.message().contains("zone"), "{zone}");
    let long = ours.lock(&"x".repeat(65)).try_acquire().await.unwrap_err();
    assert!(long.code() == Code::Invalid && long.message().contains("64"), "{long}");
    let reader = ours.read_lock("x").try_acquire().await.unwrap_err();
    assert!(reader.code() == Code::Unsupported && reader.message().contains("dialect"), "{reader}");

    server.sql(&format!("DROP TABLE shedlock; {POSTGRES_TABLES}"));
    let both = ours.all(["x", "y"]).acquire().await.expect("one after the other");
    assert!(!holds(&ours, "y").await);
    both.release().await.check().unwrap();
    assert!(holds(&ours, "x").await);
}

/// A fault of another library's row affects no lock of fencelock's own, though one client renews both.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_row_that_stays_locked_costs_no_other_lock() {
    let server = start();
    let ours = connect(&format!("{}?ttl=2s", server.url("postgres"))).await;
    let own = ours.lock("own").acquire().await.unwrap();
    let shared = ours.lock("x").option("dialect", "shedlock");
    let theirs = shared.acquire().await.unwrap();
    let (other, connection) =
        tokio_postgres::connect(&server.url("postgres"), NoTls).await.unwrap();
    tokio::spawn(connection);
    other.batch_execute("BEGIN; SELECT 1 FROM shedlock FOR UPDATE").await.unwrap();
    theirs.lost().await;
    assert!(own.is_held());
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert!(own.is_held(), "it is renewed beside the other one");
    other.batch_execute("COMMIT").await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn names_are_those_of_the_dialect() {
    let server = start();
    let ours = client(&server, "shedlock").await;
    for name in ["orders", "fence"] {
        assert!(holds(&ours, name).await);
    }
    assert_eq!(ours.names("f").await.unwrap(), ["fence"]);
    assert_eq!(ours.names("").await.unwrap(), ["fence", "orders"]);
}
