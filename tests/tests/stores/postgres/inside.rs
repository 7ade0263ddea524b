//! Locks within the user's own transactions on a real PostgreSQL server.

use std::time::Duration;

use fencelock::driver::postgres::{lock_in, schema};
use fencelock::{Code, Token};
use fencelock_tests::postgres::PostgresServer;
use tokio_postgres::{Client, NoTls, Transaction};

const PATIENCE: Duration = Duration::from_secs(30);

async fn lock(transaction: &Transaction<'_>, name: &str) -> Result<Token, fencelock::Error> {
    let ask = async |sql: &str, name: &str| {
        let row = transaction.query_one(sql, &[&name]).await.expect("the server answers");
        Ok(row.get(0))
    };
    lock_in(name, ask).await
}

async fn session(server: &PostgresServer, user: &str) -> Client {
    let connected = tokio_postgres::connect(&server.url(user), NoTls).await;
    let (client, connection) = connected.expect("the server takes connections");
    tokio::spawn(connection);
    client
}

/// A server with the tables, and a user who may lock and no more.
fn start() -> PostgresServer {
    let server = PostgresServer::start();
    server.sql(&schema("fencelock").unwrap());
    server.sql("CREATE ROLE app LOGIN; GRANT USAGE ON SEQUENCE fencelock_token TO app");
    server
}

/// Transactions that read, compute and write lose no update, and their tokens rise also when some are rolled back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn transactions_exclude_each_other() {
    let server = start();
    server.sql("CREATE TABLE account AS SELECT 0::bigint AS balance, 0::bigint AS token; GRANT ALL ON account TO app");
    let rounds = 30;
    let mut tasks = Vec::new();
    for writer in 0..4_i64 {
        let mut client = session(&server, "app").await;
        tasks.push(tokio::spawn(async move {
            for round in 0..rounds {
                let transaction = client.transaction().await.unwrap();
                let token = lock(&transaction, "account").await.unwrap().get().cast_signed();
                let row = transaction.query_one("SELECT * FROM account", &[]).await.unwrap();
                let (balance, before): (i64, i64) = (row.get(0), row.get(1));
                assert!(token > before, "{token} after {before}");
                let write = "UPDATE account SET balance = $1, token = $2";
                transaction.execute(write, &[&(balance + 1), &token]).await.unwrap();
                if round % 3 == writer % 3 {
                    transaction.rollback().await.unwrap();
                } else {
                    transaction.commit().await.unwrap();
                }
            }
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(server.sql("SELECT balance FROM account"), (4 * rounds / 3 * 2).to_string());
}

/// A rollback, or the end of a backend, frees the lock; a token that was drawn is not drawn again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_ends_the_transaction_ends_the_lock() {
    let server = start();
    let (mut one, mut two) = (session(&server, "app").await, session(&server, "app").await);
    let mut last = Token::default();
    for _ in 0..3 {
        let first = one.transaction().await.unwrap();
        let token = lock(&first, "x").await.unwrap();
        assert!(token > last);
        let second = two.transaction().await.unwrap();
        last = {
            let mut waits = std::pin::pin!(lock(&second, "x"));
            let early = tokio::time::timeout(Duration::from_millis(200), &mut waits).await;
            assert!(early.is_err(), "it waits");
            first.rollback().await.unwrap();
            tokio::time::timeout(PATIENCE, waits).await.unwrap().unwrap()
        };
        assert!(last > token);
        second.commit().await.unwrap();
    }
    let first = one.transaction().await.unwrap();
    lock(&first, "x").await.unwrap();
    let second = two.transaction().await.unwrap();
    let waits = lock(&second, "x");
    server.sql(
        "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND granted",
    );
    let token = tokio::time::timeout(PATIENCE, waits).await.unwrap().unwrap();
    assert!(token > last);
    // The tokens are beside those of the table, which follow the clock.
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let day = Duration::from_hours(24).as_micros();
    assert!(u128::from(token.get()).abs_diff(now.as_micros()) < day);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_no_name_locks_nothing() {
    let server = start();
    let mut client = session(&server, "app").await;
    for name in ["", "fencelock:x", "a\nb", &"x".repeat(513)] {
        let transaction = client.transaction().await.unwrap();
        let error = lock(&transaction, name).await.unwrap_err();
        assert_eq!(error.code(), Code::Invalid, "{error}");
    }
    for name in ["''", "NULL", "'fencelock:x'", "repeat('x', 513)"] {
        let error = client.query(&format!("SELECT fencelock_lock({name})"), &[]).await.unwrap_err();
        assert_eq!(
            error.code().map(tokio_postgres::error::SqlState::code),
            Some("22023"),
            "{error}"
        );
    }
    assert_eq!(server.sql("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"), "0");
    let long = "ä".repeat(256);
    lock(&client.transaction().await.unwrap(), &long).await.unwrap();
}
