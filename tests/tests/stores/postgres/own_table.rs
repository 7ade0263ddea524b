//! Versions in a table of the user's own, on PostgreSQL.

use std::sync::Arc;

use fencelock::{Client, Code};
use fencelock_tests::own_table::{
    Tables, counts_everybody, keeps_types, refuses_late_changes, tells_what_is_wrong,
};
use fencelock_tests::postgres::PostgresServer;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

const ACCOUNT: &str = "account(id, version, balance)";

struct On(PostgresServer);

impl On {
    fn start() -> Self {
        Self(PostgresServer::start())
    }

    /// With one account.
    fn with_account() -> Self {
        let on = Self::start();
        on.sql(
            "CREATE TABLE account (id int PRIMARY KEY, version int NOT NULL DEFAULT 0, balance int);
             INSERT INTO account VALUES (1, 0, 5)",
        );
        on
    }
}

/// A transaction of somebody else's that does this and then keeps the row locked for so many seconds. It has the row.
async fn locks_row(server: &Arc<On>, statement: &'static str, seconds: f64) -> JoinHandle<String> {
    let other = server.clone();
    let transaction = tokio::task::spawn_blocking(move || {
        other.sql(&format!("BEGIN; {statement}; SELECT pg_sleep({seconds}); COMMIT"))
    });
    while server.sql("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'") == "0" {
        tokio::task::yield_now().await;
    }
    transaction
}

impl Tables for On {
    async fn client(&self) -> Client {
        fencelock::connect(&format!("{}?create=true", self.0.url("postgres"))).await.unwrap()
    }

    fn sql(&self, statements: &str) -> String {
        self.0.sql(statements)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn values_are_of_the_columns_own_types() {
    let make = r#"CREATE TABLE kinds (number bigint PRIMARY KEY, "The Version" smallint NOT NULL DEFAULT 3, amount numeric(10, 2), whole int,
            words varchar(12), document jsonb, flag boolean, day date, list int[], rest text DEFAULT 'kept');
        INSERT INTO kinds VALUES (9007199254740993)"#;
    let columns = [
        ("amount", json!(12.5), "12.50"),
        ("whole", json!(-7), "-7"),
        ("words", json!("a 'b' \"c\" ö"), "a 'b' \"c\" ö"),
        ("document", json!({"a": [1, null, "x"]}), r#"{"a": [1, null, "x"]}"#),
        ("flag", json!(true), "t"),
        ("day", json!("2026-02-28"), "2026-02-28"),
        ("list", json!([1, 2]), "{1,2}"),
        ("list", Value::Null, ""),
    ];
    keeps_types(&On::start(), make, &columns).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_that_came_too_late_is_refused() {
    refuses_late_changes(&On::start()).await;
    let memory = fencelock::connect("memory:own-table").await.unwrap();
    let error = memory.version("42").on_table(ACCOUNT).read::<u32>().await.unwrap_err();
    assert!(error.code() == Code::Unsupported && error.message().contains("PostgreSQL"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s9_updates_of_everybody_are_all_counted() {
    counts_everybody(&On::start()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_wrong_with_a_table_is_told() {
    let server = On::start();
    tells_what_is_wrong(&server).await;
    server.sql("CREATE ROLE poor LOGIN; GRANT SELECT ON fencelock, fencelock_cell TO poor");
    let poor = fencelock::connect(server.0.url("poor").as_str()).await.unwrap();
    let own = poor.version("1").on_table(ACCOUNT);
    let error = own.read::<u32>().await.unwrap_err();
    assert!(error.code() == Code::Auth && error.message().contains("your table"), "{error}");
    server.sql("GRANT SELECT, UPDATE ON account TO poor");
    own.update(|value: Option<u32>| Some(value? + 1)).await.expect("no more is needed");
}

/// An update that another transaction holds up waits for it, and finds what it has made.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_row_that_is_locked_is_waited_for() {
    let server = Arc::new(On::with_account());
    let own = server.client().await.version("1").on_table(ACCOUNT);
    own.read::<u32>().await.unwrap();
    let change = "UPDATE account SET balance = 50, version = version + 1";
    let transaction = locks_row(&server, change, 0.5).await;
    let updated = own.update(|value: Option<u32>| Some(value? + 1)).await.unwrap().unwrap();
    assert_eq!((updated.value, updated.version.get()), (51, 2));
    transaction.await.unwrap();
}

/// A client that waits for a row in vain has changed nothing, knows it, and has held up no lock.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_row_that_stays_locked_is_not_changed() {
    let server = Arc::new(On::with_account());
    let url = format!("{}?create=true&timeout=2s", server.0.url("postgres"));
    let client = fencelock::connect(&url).await.unwrap();
    let own = client.version("1").on_table(ACCOUNT);
    own.read::<u32>().await.unwrap();
    let transaction = locks_row(&server, "SELECT 1 FROM account FOR UPDATE", 5.0).await;
    let update = async || own.update(|value: Option<u32>| Some(value? + 1)).await;
    let locks = async {
        let began = std::time::Instant::now();
        let guard = client.write_lock("x").acquire().await.unwrap();
        guard.release().await.check().unwrap();
        began.elapsed()
    };
    let updates = futures_util::future::join_all((0..8).map(|_| update()));
    let (updates, took) = futures_util::future::join(updates, locks).await;
    assert!(took < std::time::Duration::from_millis(1900), "{took:?}");
    for updated in updates {
        let error = updated.expect_err("the row is locked");
        assert!(error.code() == Code::Unavailable && error.retryable(), "{error}");
    }
    assert_eq!(server.sql("SELECT balance, version FROM account"), "5|0");
    transaction.await.unwrap();
    assert_eq!(update().await.unwrap().unwrap().value, 6);
}
