//! Rows of a table of the user's own as locks, on a real MariaDB server.

use std::time::{Duration, Instant};

use fencelock::Code;
use fencelock_tests::database::{holds, refused};
use fencelock_tests::database_sessions::own_rows::{
    self, a_name_is_a_value, a_name_is_refused, client, on, tables_are_refused,
};
use fencelock_tests::database_sessions::{DatabaseSessions, Way};
use fencelock_tests::mysql::MysqlSessions;
use fencelock_tests::session_store::{PATIENCE, code};
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Opts};

/// Accounts, and a user who may read and change them, and no more.
fn start() -> MysqlSessions {
    let server = MysqlSessions::start_with_rights(Way::Rows);
    server.sql(
        "REVOKE SELECT, INSERT, UPDATE, DELETE ON locks.fencelock_row FROM locks;
         CREATE TABLE account (id int PRIMARY KEY, balance int, `The Key` varchar(3) UNIQUE, note varchar(99), UNIQUE (note(3)),
             code varchar(9) CHARACTER SET latin1 UNIQUE);
         INSERT INTO account VALUES (7, 10, 'a b', 'n7', 'c7'), (8, 10, '8', 'n8', 'c8'), (9, 10, '9', 'n9', 'c9');
         CREATE TABLE coin (id uuid PRIMARY KEY, day date UNIQUE, owner int);
         INSERT INTO coin VALUES ('6d1f0c52-0c1c-4c6e-9d3c-6f3f1c1b7a11', '2026-02-28', 1);
         CREATE DATABASE bank; CREATE TABLE bank.account (id int PRIMARY KEY); INSERT INTO bank.account VALUES (7);
         GRANT SELECT, UPDATE ON locks.account TO locks; GRANT SELECT, UPDATE ON locks.coin TO locks;
         GRANT SELECT, UPDATE ON bank.account TO locks",
    );
    server
}

/// The application's own connection.
async fn application(server: &MysqlSessions) -> Conn {
    let url = format!("mysql://owner@127.0.0.1:{}/locks", server.port());
    Conn::new(Opts::from_url(&url).expect("this is a URL")).await.expect("it connects")
}

fn number(error: &mysql_async::Error) -> u16 {
    match error {
        mysql_async::Error::Server(said) => said.code,
        other => panic!("{other}"),
    }
}

/// Names that the column takes for the same are the same lock.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_name_is_a_value_of_the_key() {
    let server = start();
    for (table, name, same, other) in [
        ("account(id)", "7", "7", Some("8")),
        ("account( The Key )", "a b", "A b", Some("9")),
        ("account(code)", "c7", "C7", Some("c8")),
        ("locks.account(id)", "7", "7", Some("9")),
        ("bank.account(id)", "7", "7", None),
        (
            "coin(id)",
            "6d1f0c52-0c1c-4c6e-9d3c-6f3f1c1b7a11",
            "6D1F0C52-0C1C-4C6E-9D3C-6F3F1C1B7A11",
            None,
        ),
        ("coin(day)", "2026-02-28", "2026-02-28", None),
    ] {
        let shown = (&[name, same][..], "connection");
        a_name_is_a_value(&server, table, [name, same], other, shown).await;
    }
    // The same key in another table is another lock.
    let (one, two) =
        (client(&server, "account(id)").await, client(&server, "bank.account(id)").await);
    let guard = one.lock("7").acquire().await.unwrap();
    assert!(holds(&two, "7").await);
    assert_eq!(code(one.names("").await), Some(Code::Unsupported));
    // The table is the same, however it is written.
    let written = client(&server, "locks.account(id)").await;
    assert_eq!(written.lock("7").inspect().await.unwrap().holders.len(), 1);
    guard.release().await.check().unwrap();
    server.comes_to("0|0").await;
}

/// A lock and the application's own transactions exclude each other.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_application_and_the_lock_exclude_each_other() {
    const CHANGE: &str = "BEGIN; UPDATE account SET balance = balance - 1 WHERE id = 7";
    let server = start();
    let client = client(&server, "account(id)").await;
    let mut application = application(&server).await;
    application.query_drop("SET innodb_lock_wait_timeout = 0").await.unwrap();
    let guard = client.lock("7").acquire().await.unwrap();
    let refused = application.query_drop(CHANGE).await.unwrap_err();
    assert_eq!(number(&refused), 1205);
    // Whoever only reads is not held up.
    let balance = application.query_first("SELECT balance FROM account WHERE id = 7").await;
    assert_eq!(balance.unwrap(), Some(10));
    application.query_drop("ROLLBACK").await.unwrap();
    guard.release().await.check().unwrap();
    for end in ["COMMIT", "ROLLBACK"] {
        application.query_drop(CHANGE).await.unwrap();
        assert!(!holds(&client, "7").await);
        let waits = tokio::spawn(client.lock("7").acquire_within(PATIENCE));
        server.comes_to("0|1").await;
        assert_eq!(client.lock("7").inspect().await.unwrap().waiters.len(), 1);
        application.query_drop(end).await.unwrap();
        waits.await.unwrap().unwrap().release().await.check().unwrap();
    }
    // A row that goes while it is waited for: whoever waits is told.
    application.query_drop("BEGIN; DELETE FROM account WHERE id = 7").await.unwrap();
    let waits = tokio::spawn(client.lock("7").acquire_within(PATIENCE));
    server.comes_to("0|1").await;
    application.query_drop("COMMIT").await.unwrap();
    let error = waits.await.unwrap().unwrap_err();
    assert!(error.code() == Code::Invalid && error.message().contains("insert"), "{error}");
    server.comes_to("0|0").await;
}

/// An application that waits for whoever waits for it: the server ends one of both, and the lock comes all the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deadlock_is_no_hang() {
    let server = start();
    let client = client(&server, "account(The Key)").await;
    let mut application = application(&server).await;
    for changes in ["", "; UPDATE account SET balance = 5 WHERE id > 7"] {
        // The row has an entry for its other key. The lock has that, and waits for the row.
        let begin = format!("BEGIN; UPDATE account SET balance = 0 WHERE id = 7{changes}");
        application.query_drop(begin).await.unwrap();
        let waits = tokio::spawn(client.lock("a b").acquire_within(PATIENCE));
        server.comes_to("0|1").await;
        let changed = application.query_drop("UPDATE account SET `The Key` = 'x' WHERE id = 7");
        if let Err(error) = changed.await {
            assert_eq!(number(&error), 1213);
        }
        application.query_drop("ROLLBACK").await.unwrap();
        waits.await.unwrap().unwrap().release().await.check().unwrap();
    }
    server.comes_to("0|0").await;
}

/// An error is reported with a code, at once where it can be, and nothing is held.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_wrong_is_told() {
    let server = start();
    server.sql(
        "CREATE TABLE hidden (id int PRIMARY KEY); INSERT INTO hidden VALUES (1);
         CREATE TABLE loose (id int PRIMARY KEY) ENGINE=MyISAM; GRANT SELECT, UPDATE ON locks.loose TO locks;
         CREATE VIEW seen AS SELECT * FROM account; GRANT SELECT, UPDATE ON locks.seen TO locks",
    );
    let tables = [
        ("account", "`account(id)`"),
        ("account()", "bytes"),
        ("account(id, balance)", "`account(id)`"),
        ("account(id, version, balance)", "`mysql://`"),
        ("a.b.account(id)", "`account(id)`"),
        ("none(id)", "no table"),
        ("hidden(id)", "no table"),
        ("account(none)", "no column"),
        ("coin(owner)", "several rows"),
        ("account(note)", "several rows"),
        ("seen(id)", "several rows"),
        ("loose(id)", "no table with transactions"),
        ("account` WHERE true; DROP TABLE account; --(id)", "no table"),
        ("account(id` = 7; DROP TABLE account; --)", "no column"),
        ("acc'ount(id)", "no table"),
    ];
    tables_are_refused(&server, &tables).await;
    for scheme in ["mysql", "mysql+getlock"] {
        let url = on(&server, "account(id)").replacen("mysql+row", scheme, 1);
        let (code, error) = refused(&url).await;
        assert!(code == Code::Invalid && error.message().contains("`mysql+row://`"), "{error}");
    }
    let account = client(&server, "account(id)").await;
    let key = client(&server, "account(The Key)").await;
    let latin = client(&server, "account(code)").await;
    let held = account.lock("7").acquire().await.unwrap();
    for (client, name) in [
        (&account, "70"),
        (&account, "seven"),
        (&account, "7x"),
        (&account, "007"),
        (&account, "7' OR '1' = '1"),
        (&account, "99999999999"),
        (&key, "abcd"),
        (&key, "\u{1f512}"),
        (&latin, "\u{436}"),
    ] {
        a_name_is_refused(client, name, Code::Invalid).await;
    }
    assert_eq!(server.locks(), "1|0");
    held.release().await.check().unwrap();
    let guard = account.lock("7").acquire().await.unwrap();
    server.sql("REVOKE SELECT, UPDATE ON locks.account FROM locks");
    let error = account.lock("8").acquire().await.unwrap_err();
    assert_eq!(error.code(), Code::Auth, "{error}");
    assert!(guard.is_held());
    guard.release().await.check().unwrap();
    server.comes_to("0|0").await;
}

/// B93: a session that is ended is told as a loss.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b93_a_session_that_is_ended_is_a_loss() {
    own_rows::b93_a_session_that_is_ended_is_a_loss(&start()).await;
}

/// A user who takes the mark of a row by hand holds a grant up for a second, and no longer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_rests_on_a_mark() {
    let server = start();
    let client = client(&server, "account(id)").await;
    let guard = client.lock("7").acquire().await.unwrap();
    let marks = "SELECT TABLE_SCHEMA FROM information_schema.METADATA_LOCK_INFO WHERE TABLE_SCHEMA LIKE 'fencelock-row:%'";
    let mark = server.sql(marks);
    guard.release().await.check().unwrap();
    let mut application = application(&server).await;
    application.query_drop(format!("DO GET_LOCK('{mark}', 0)")).await.unwrap();
    let began = Instant::now();
    let guard = client.lock("7").acquire_within(PATIENCE).await.unwrap();
    assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
    assert!(!holds(&client, "7").await);
    guard.release().await.check().unwrap();
    application.query_drop(format!("DO RELEASE_LOCK('{mark}')")).await.unwrap();
}
