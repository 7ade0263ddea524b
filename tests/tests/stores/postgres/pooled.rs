//! The table behind a pooler that hands each transaction to another session: it serves, and leaves nothing in sessions that others use.

use std::time::{Duration, Instant};

use fencelock::Code;
use fencelock_tests::database::{connect, refused};
use fencelock_tests::database_faults::take_turns;
use fencelock_tests::postgres::{Pooler, PostgresServer};
use fencelock_tests::session_store::{PATIENCE, waiting};
use tokio_postgres::{NoTls, SimpleQueryMessage};

/// Clients behind the pooler and one that is not take turns at one lock; what they set ends with their transactions.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pooler_of_transactions_carries_the_table() {
    let server = PostgresServer::start();
    let direct = server.place("locks");
    let pooler = Pooler::before(server.port(), &["locks"], "transaction");
    let plain = PostgresServer::url_at(pooler.port(), "locks");
    let (code, error) = refused(&plain).await;
    assert_eq!(code, Code::Unsupported, "the tables are not there yet: {error}");
    let pooled = format!("{plain}?create=true");
    let clients = [
        connect(&pooled).await,
        connect(&pooled).await,
        connect(&plain).await,
        connect(&direct).await,
    ];
    take_turns(&clients).await;

    let swapped = clients[0].version("v").compare_and_set(None, &1).await;
    assert!(swapped.is_ok(), "cells serve too");
    let many = (0..30).map(|number| format!("n{number}"));
    let all = clients[0].all(many).acquire().await.unwrap();
    all.release().await.check().unwrap();

    let connected = tokio_postgres::connect(&plain, NoTls).await;
    let (other, connection) = connected.expect("the pooler takes connections");
    tokio::spawn(connection);
    let reset = |row: &tokio_postgres::SimpleQueryRow| {
        format!("{}={}", row.get(0).unwrap_or_default(), row.get(1).unwrap_or_default())
    };
    let changed = "SELECT name, setting FROM pg_settings WHERE source = 'session' AND setting IS DISTINCT FROM reset_val
        AND name <> 'application_name'";
    let left = other.simple_query(changed).await.unwrap();
    let left: Vec<_> = left
        .iter()
        .filter_map(|answer| match answer {
            SimpleQueryMessage::Row(row) => Some(reset(row)),
            _ => None,
        })
        .collect();
    assert!(left.is_empty(), "a session of others keeps {left:?}");
    assert_eq!(server.sql("SELECT count(*) FROM pg_prepared_statements"), "0");
}

/// A waiter behind the pooler has its turn soon, and one elsewhere is told by a release behind the pooler.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_turn_behind_a_pooler_comes_soon() {
    let server = PostgresServer::start();
    let direct = connect(&server.place("locks")).await;
    let pooler = Pooler::before(server.port(), &["locks"], "transaction");
    let pooled = connect(&PostgresServer::url_at(pooler.port(), "locks")).await;
    for (holder, waiter) in [(&direct, &pooled), (&pooled, &direct)] {
        for kind in ["mutex", "open"] {
            let fair = kind == "mutex";
            let guard = holder.lock(kind).fair(fair).acquire().await.unwrap();
            let waits = tokio::spawn(waiter.lock(kind).fair(fair).acquire_within(PATIENCE));
            waiting(holder, kind, 1).await;
            tokio::time::sleep(Duration::from_millis(300)).await;
            let released = Instant::now();
            guard.release().await.check().unwrap();
            let next = waits.await.unwrap().expect("it is served");
            let took = released.elapsed();
            assert!(took < Duration::from_millis(400), "{kind}: {took:?}");
            next.release().await.check().unwrap();
        }
    }
}

/// Others leave their `search_path` in the sessions of the pooler: it is not ours, nor is what they do to our tables.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn settings_of_others_do_not_count() {
    let server = PostgresServer::start();
    let direct = connect(&server.place("locks")).await;
    server.sql("CREATE SCHEMA tenant AUTHORIZATION locks");
    let pooler = Pooler::before(server.port(), &["locks"], "transaction");
    let url = PostgresServer::url_at(pooler.port(), "locks");
    let (tenant, connection) = tokio_postgres::connect(&url, NoTls).await.unwrap();
    tokio::spawn(connection);
    tenant.batch_execute("SET search_path = tenant; SET statement_timeout = 1").await.unwrap();
    let guard = direct.lock("x").acquire().await.unwrap();
    let pooled = connect(&format!("{url}?create=true")).await;
    assert!(pooled.lock("x").try_acquire().await.unwrap().is_none(), "it is one table");
    assert_eq!(server.sql("SELECT to_regclass('tenant.fencelock') IS NULL"), "t");
    guard.release().await.check().unwrap();
    pooled.lock("x").acquire_within(PATIENCE).await.unwrap().release().await.check().unwrap();
}

/// A pooler with one session is no riddle, and tables of another shape are named.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_wrong_is_told_behind_a_pooler() {
    let server = PostgresServer::start();
    server.sql("CREATE ROLE locks LOGIN; CREATE SCHEMA AUTHORIZATION locks; CREATE SCHEMA \"My \"\"Own\" AUTHORIZATION locks");
    let pooler = Pooler::before(server.port(), &["locks"], "transaction");
    let url = PostgresServer::url_at(pooler.port(), "locks");
    let mine = connect(&format!("{url}?create=true&schema=My+%22Own")).await;
    let _guard = mine.lock("x").acquire().await.unwrap();
    assert_eq!(server.sql("SELECT count(*) FROM \"My \"\"Own\".fencelock"), "1");
    let (code, error) = refused(&url).await;
    assert_eq!(code, Code::Unsupported, "{error}");
    server.sql("CREATE TABLE locks.fencelock (name text, kind integer)");
    let (code, error) = refused(&format!("{url}?schema=locks")).await;
    assert_eq!((code, &*error.fields()["column"]), (Code::Conflict, "fencelock.kind"), "{error}");
}
