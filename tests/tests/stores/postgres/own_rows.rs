//! Rows of a table of the user's own as locks, on a real PostgreSQL server.

use std::time::Duration;

use fencelock::Code;
use fencelock_tests::database::{holds, refused};
use fencelock_tests::database_sessions::own_rows::{
    self, a_name_is_a_value, a_name_is_refused, client, on, tables_are_refused,
};
use fencelock_tests::database_sessions::{DatabaseSessions, Way};
use fencelock_tests::postgres::{PostgresServer, PostgresSessions};
use fencelock_tests::session_store::{PATIENCE, code};
use tokio_postgres::NoTls;

/// Accounts, and a user who may read and change them, and no more.
fn start() -> PostgresSessions {
    let server = PostgresSessions::start_with_rights(Way::Rows);
    server.server.sql(
        "REVOKE UPDATE, DELETE ON fencelock_row FROM locks;
         CREATE TABLE account (id int PRIMARY KEY, balance int, \"The Key\" varchar(3) UNIQUE, code name UNIQUE);
         INSERT INTO account VALUES (7, 10, 'a b'), (8, 10, '8'), (9, 10, '9');
         CREATE TABLE coin (id uuid PRIMARY KEY, day date UNIQUE, owner int);
         INSERT INTO coin VALUES ('6d1f0c52-0c1c-4c6e-9d3c-6f3f1c1b7a11', '2026-02-28', 1);
         CREATE SCHEMA bank; CREATE TABLE bank.account (id int PRIMARY KEY); INSERT INTO bank.account VALUES (7);
         GRANT USAGE ON SCHEMA bank TO locks; GRANT SELECT, UPDATE ON account, coin, bank.account TO locks",
    );
    server
}

/// The application's own connection.
async fn application(server: &PostgresServer) -> tokio_postgres::Client {
    let url = server.url("postgres");
    let (client, connection) = tokio_postgres::connect(&url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// Names are values of the key's own type: the same value is the same lock.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_name_is_a_value_of_the_key() {
    let server = start();
    for (table, name, same, other) in [
        ("account(id)", "7", "007", Some("8")),
        ("account( The Key )", "a b", "a b", Some("9")),
        ("public.account(id)", "7", " 7 ", None),
        ("bank.account(id)", "7", "7", None),
        (
            "coin(id)",
            "6d1f0c52-0c1c-4c6e-9d3c-6f3f1c1b7a11",
            "{6D1F0C52-0C1C-4C6E-9D3C-6F3F1C1B7A11}",
            None,
        ),
        ("coin(day)", "2026-02-28", "28 Feb 2026", None),
    ] {
        let shown = (&[name][..], "backend");
        a_name_is_a_value(&server, table, [name, same], other, shown).await;
    }
    // The same key in another table is another lock.
    let (one, two) =
        (client(&server, "account(id)").await, client(&server, "bank.account(id)").await);
    let guard = one.lock("7").acquire().await.unwrap();
    assert!(holds(&two, "7").await);
    assert_eq!(code(one.names("").await), Some(Code::Unsupported));
    guard.release().await.check().unwrap();
    server.comes_to("0|0").await;
}

/// A lock and the application's own transactions exclude each other.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_application_and_the_lock_exclude_each_other() {
    const CHANGE: &str = "UPDATE account SET balance = balance - 1 WHERE id = 7";
    let server = start();
    let client = client(&server, "account(id)").await;
    let mut application = application(&server.server).await;
    application
        .batch_execute("SET lock_timeout = 50; SET application_name = 'till'")
        .await
        .unwrap();
    let guard = client.lock("7").acquire().await.unwrap();
    let refused = application.execute(CHANGE, &[]).await.unwrap_err();
    assert_eq!(refused.code().map(|state| state.code().to_owned()), Some("55P03".to_owned()));
    // Whoever only reads is not held up.
    assert!(application.query_one("SELECT balance FROM account WHERE id = 7", &[]).await.is_ok());
    guard.release().await.check().unwrap();
    for commits in [true, false] {
        let transaction = application.transaction().await.unwrap();
        transaction.execute(CHANGE, &[]).await.unwrap();
        assert!(!holds(&client, "7").await);
        let state = client.lock("7").inspect().await.unwrap();
        assert!(state.holders[0].info.contains("till"), "{state:?}");
        let waits = tokio::spawn(client.lock("7").acquire_within(PATIENCE));
        server.comes_to("1|1").await;
        assert_eq!(client.lock("7").inspect().await.unwrap().waiters.len(), 1);
        if commits {
            transaction.commit().await.unwrap();
        } else {
            transaction.rollback().await.unwrap();
        }
        waits.await.unwrap().unwrap().release().await.check().unwrap();
    }
    // A row that goes while it is waited for: whoever waits is told.
    let transaction = application.transaction().await.unwrap();
    transaction.execute("DELETE FROM account WHERE id = 7", &[]).await.unwrap();
    let waits = tokio::spawn(client.lock("7").acquire_within(PATIENCE));
    server.comes_to("1|1").await;
    transaction.commit().await.unwrap();
    let error = waits.await.unwrap().unwrap_err();
    assert!(error.code() == Code::Invalid && error.message().contains("insert"), "{error}");
    server.comes_to("0|0").await;
}

/// An application that waits for whoever waits for it: the server ends one of both, and the lock comes all the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deadlock_is_no_hang() {
    let server = start();
    let client = client(&server, "account(id)").await;
    let mut application = application(&server.server).await;
    for _ in 0..2 {
        let transaction = application.transaction().await.unwrap();
        transaction.execute("UPDATE account SET balance = 0 WHERE id = 7", &[]).await.unwrap();
        let waits = tokio::spawn(client.lock("7").acquire_within(PATIENCE));
        server.comes_to("1|1").await;
        // This waits for the one that waits for the row.
        let locked = transaction.batch_execute("LOCK TABLE account").await;
        if let Err(error) = &locked {
            assert_eq!(error.code().map(|state| state.code().to_owned()), Some("40P01".to_owned()));
        }
        drop(transaction);
        waits.await.unwrap().unwrap().release().await.check().unwrap();
    }
    server.comes_to("0|0").await;
}

/// The defaults of a database, or of a user, do not matter.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn defaults_of_the_database_do_not_matter() {
    let server = start();
    server.server.sql(
        "ALTER ROLE locks SET default_transaction_isolation = 'serializable'; ALTER ROLE locks SET statement_timeout = '300ms';
         ALTER ROLE locks SET lock_timeout = '200ms'; ALTER ROLE locks SET idle_in_transaction_session_timeout = '300ms'",
    );
    let client = client(&server, "account(id)").await;
    let mut application = application(&server.server).await;
    let transaction = application.transaction().await.unwrap();
    transaction.execute("UPDATE account SET balance = 3 WHERE id = 7", &[]).await.unwrap();
    let waits = tokio::spawn(client.lock("7").acquire_within(PATIENCE));
    server.comes_to("1|1").await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    transaction.commit().await.unwrap();
    let guard = waits.await.unwrap().expect("a change is no failure");
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert!(guard.is_held());
    guard.release().await.check().unwrap();
    server.comes_to("0|0").await;
}

/// An error is reported with a code, at once where it can be, and nothing is held.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_wrong_is_told() {
    let server = start();
    server.server.sql(
        "CREATE TABLE foreign_table (id int PRIMARY KEY); INSERT INTO foreign_table VALUES (1);
         CREATE VIEW seen AS SELECT * FROM account",
    );
    let tables = [
        ("account", "`account(id)`"),
        ("account()", "1 to 63 bytes"),
        ("account(id, balance)", "`account(id)`"),
        ("account(id, version, balance)", "`postgres://`"),
        ("a.b.account(id)", "`account(id)`"),
        ("none(id)", "no table"),
        ("account(none)", "no column"),
        ("coin(owner)", "several rows"),
        ("seen(id)", "several rows"),
        ("account(code)", "cuts"),
        ("account\" WHERE true; DROP TABLE account; --(id)", "no table"),
        ("account(id\" = 7; DROP TABLE account; --)", "no column"),
    ];
    tables_are_refused(&server, &tables).await;
    for scheme in ["postgres", "postgres+advisory", "sqlite:x", "memory:x"] {
        let url = on(&server, "account(id)");
        let url = match scheme.split_once(':') {
            Some(_) => format!("{scheme}?on_table=account(id)"),
            None => url.replacen("postgres+row", scheme, 1),
        };
        let (code, error) = refused(&url).await;
        assert!(code == Code::Invalid && error.message().contains("`postgres+row://`"), "{error}");
    }
    let account = client(&server, "account(id)").await;
    let key = client(&server, "account(The Key)").await;
    let foreign = client(&server, "foreign_table(id)").await;
    for (client, name, expected) in [
        (&account, "70", Code::Invalid),
        (&account, "seven", Code::Invalid),
        (&account, "99999999999", Code::Invalid),
        (&key, "abcd", Code::Invalid),
        (&foreign, "1", Code::Auth),
    ] {
        a_name_is_refused(client, name, expected).await;
    }
    assert_eq!(server.locks(), "0|0");
    let guard = account.lock("7").acquire().await.unwrap();
    server.server.sql("REVOKE UPDATE ON account FROM locks");
    assert_eq!(code(account.lock("8").acquire().await), Some(Code::Auth));
    server.server.sql("REVOKE UPDATE ON SEQUENCE fencelock_token FROM locks");
    assert!(guard.is_held());
    guard.release().await.check().unwrap();
    server.comes_to("0|0").await;
}

/// B93: a backend that is ended is told as a loss.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b93_a_session_that_is_ended_is_a_loss() {
    own_rows::b93_a_session_that_is_ended_is_a_loss(&start()).await;
}
