//! Versions in a table of the user's own.

use std::sync::Arc;

use fencelock::{Client, Code, Error, Swapped, Version};
use fencelock_tests::postgres::PostgresServer;
use serde_json::{Value, json};

const ACCOUNT: &str = "account(id, version, balance)";

async fn connect(server: &PostgresServer) -> Client {
    fencelock::connect(&format!("{}?create=true", server.url("postgres"))).await.unwrap()
}

/// What is written is of the column's own type, and no other column changes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn values_are_of_the_columns_own_types() {
    let server = PostgresServer::start();
    server.sql(
        r#"CREATE TABLE kinds (number bigint PRIMARY KEY, "The Version" smallint NOT NULL DEFAULT 3, amount numeric(10, 2), whole int,
               words varchar(12), document jsonb, flag boolean, day date, list int[], rest text DEFAULT 'kept');
           INSERT INTO kinds VALUES (9007199254740993)"#,
    );
    let client = connect(&server).await;
    let mut version = Version::new(3);
    for (column, value, stored) in [
        ("amount", json!(12.5), "12.50"),
        ("whole", json!(-7), "-7"),
        ("words", json!("a 'b' \"c\" ö"), "a 'b' \"c\" ö"),
        ("document", json!({"a": [1, null, "x"]}), r#"{"a": [1, null, "x"]}"#),
        ("flag", json!(true), "t"),
        ("day", json!("2026-02-28"), "2026-02-28"),
        ("list", json!([1, 2]), "{1,2}"),
        ("list", Value::Null, ""),
    ] {
        let own = client
            .version("9007199254740993")
            .on_table(&format!("public.kinds (number, The Version, {column} )"));
        let before = own.read::<Value>().await.unwrap().expect("the row is there");
        assert_eq!((before.version, column == "list" || before.value.is_null()), (version, true));
        let Swapped::Done(next) = own.compare_and_set(Some(version), &value).await.unwrap() else {
            panic!("nobody else is there");
        };
        assert_eq!(next.get(), version.get() + 1);
        version = next;
        assert_eq!(server.sql(&format!("SELECT {column} FROM kinds")), stored);
        let after = own.read::<Value>().await.unwrap().expect("the row is there");
        assert_eq!((after.value, after.version), (value, version), "{column}");
    }
    assert_eq!(server.sql("SELECT rest FROM kinds"), "kept");
}

/// Whoever was slower is told what is there; nothing is made or deleted.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_that_came_too_late_is_refused() {
    let server = PostgresServer::start();
    server.sql(
        "CREATE TABLE account (id int PRIMARY KEY, version bigint NOT NULL DEFAULT 0, balance int);
         INSERT INTO account VALUES (42, 0, 100)",
    );
    let client = connect(&server).await;
    let own = client.version("42").on_table(ACCOUNT);
    let first = own.read::<u32>().await.unwrap().unwrap();
    assert_eq!((first.value, first.version.get()), (100, 0));
    // The application's own way to change it.
    server.sql("UPDATE account SET balance = 60, version = version + 1 WHERE id = 42");
    let swapped = own.compare_and_set(Some(first.version), &0).await.unwrap();
    let Swapped::Changed(Some(other)) = swapped else { panic!("{swapped:?}") };
    assert_eq!((other.value, other.version.get()), (60, 1));
    let updated = own.update(|value: Option<u32>| value?.checked_sub(50)).await.unwrap().unwrap();
    assert_eq!((updated.value, updated.version.get()), (10, 2));
    assert!(own.update(|value: Option<u32>| value?.checked_sub(50)).await.unwrap().is_none());

    let none = client.version("43").on_table(ACCOUNT);
    assert!(none.read::<u32>().await.unwrap().is_none());
    let error = none.update(|_: Option<u32>| Some(1)).await.unwrap_err();
    assert!(error.code() == Code::Unsupported && error.message().contains("no row"), "{error}");
    let error = own.delete::<u32>(updated.version).await.unwrap_err();
    assert!(error.code() == Code::Unsupported && error.message().contains("deletes no"), "{error}");
    let kept = client.version("42").on_table(ACCOUNT).keep(std::time::Duration::from_secs(1));
    let error = kept.compare_and_set(Some(updated.version), &1).await.unwrap_err();
    assert_eq!(error.code(), Code::Unsupported, "{error}");
    assert_eq!(server.sql("SELECT count(*), sum(balance), sum(version) FROM account"), "1|10|2");

    let memory = fencelock::connect("memory:own-table").await.unwrap();
    let error = memory.version("42").on_table(ACCOUNT).read::<u32>().await.unwrap_err();
    assert!(error.code() == Code::Unsupported && error.message().contains("PostgreSQL"), "{error}");
}

/// S9: 64 workers change one balance; with `FENCELOCK_FULL=1` a thousand times each.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s9_updates_of_everybody_are_all_counted() {
    let server = PostgresServer::start();
    server.sql(
        "CREATE TABLE account (id int PRIMARY KEY, version bigint NOT NULL DEFAULT 0, balance int);
         INSERT INTO account VALUES (1, 0, 0)",
    );
    let times = if fencelock_tests::in_full() { 1000 } else { 10 };
    let clients = futures_util::future::join_all((0..4).map(|_| connect(&server))).await;
    let workers = (0..64).map(|worker| {
        let own = clients[worker % 4].version("1").on_table(ACCOUNT).retries(1_000_000);
        tokio::spawn(async move {
            for _ in 0..times {
                own.update(|value: Option<i64>| Some(value? + 1)).await.unwrap().unwrap();
            }
        })
    });
    for worker in futures_util::future::join_all(workers).await {
        worker.unwrap();
    }
    let all = 64 * times;
    assert_eq!(server.sql("SELECT balance, version FROM account"), format!("{all}|{all}"));
}

/// What is wrong with the table is told, each with what to do.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_wrong_with_a_table_is_told() {
    let server = PostgresServer::start();
    server.sql(
        "CREATE TABLE account (id int PRIMARY KEY, version int NOT NULL DEFAULT 0, balance int CHECK (balance >= 0), twice int, at text);
         INSERT INTO account VALUES (1, 0, 5, 1, ''), (2, -1, 5, 1, '');
         CREATE ROLE poor LOGIN",
    );
    let client = connect(&server).await;
    let read = async |name: &str, table: &str| -> Result<Value, Error> {
        Ok(json!(client.version(name).on_table(table).read::<Value>().await?))
    };
    for (table, says) in [
        ("account", "three of its columns"),
        ("account(id, version)", "three of its columns"),
        ("account(id, version, version)", "three of its columns"),
        ("a.b.account(id, version, balance)", "three of its columns"),
        ("account(id, version, )", "1 to 63 bytes"),
        ("none(id, version, balance)", "there is no table"),
        ("none.account(id, version, balance)", "there is no table"),
        ("account(key, version, balance)", "no column `key`"),
        ("account(id, counter, balance)", "no column `counter`"),
        ("account(id, version, balance; DROP TABLE account)", "no column `balance; DROP"),
        ("account(id, at, balance)", "smallint, integer or bigint, not text"),
        ("account(twice, version, balance)", "primary key, or unique"),
    ] {
        let error = read("1", table).await.expect_err(table);
        let argument = error.fields().get("argument").map(|argument| &**argument);
        assert_eq!((error.code(), argument), (Code::Invalid, Some("on_table")), "{table}: {error}");
        assert!(error.message().contains(says), "{table}: {error}");
    }
    let code = async |name: &str, value: Value| {
        let own = client.version(name).on_table(ACCOUNT);
        own.compare_and_set(Some(Version::new(0)), &value).await.expect_err("it is wrong").code()
    };
    assert_eq!(read("one", ACCOUNT).await.unwrap_err().code(), Code::Invalid);
    assert_eq!(read("2", ACCOUNT).await.unwrap_err().code(), Code::Conflict);
    assert_eq!(code("1", json!("many")).await, Code::Invalid);
    assert_eq!(code("1", json!(-5)).await, Code::Conflict);
    assert_eq!(server.sql("SELECT balance, version FROM account WHERE id = 1"), "5|0");

    server.sql("GRANT SELECT ON fencelock, fencelock_cell TO poor");
    let poor = fencelock::connect(server.url("poor").as_str()).await.unwrap();
    let own = poor.version("1").on_table(ACCOUNT);
    let error = own.read::<u32>().await.unwrap_err();
    assert!(error.code() == Code::Auth && error.message().contains("your table"), "{error}");
    server.sql("GRANT SELECT, UPDATE ON account TO poor");
    own.update(|value: Option<u32>| Some(value? + 1)).await.expect("no more is needed");

    // A table that has become another is looked at again.
    server.sql("ALTER TABLE account RENAME COLUMN balance TO amount");
    assert!(own.read::<u32>().await.is_err());
    let error = own.read::<u32>().await.unwrap_err();
    assert!(error.message().contains("no column `balance`"), "{error}");
    server.sql("ALTER TABLE account RENAME COLUMN amount TO balance");
    assert_eq!(own.read::<u32>().await.unwrap().unwrap().value, 6);
}

/// An update that another transaction holds up waits for it, and finds what it has made.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_row_that_is_locked_is_waited_for() {
    let server = Arc::new(PostgresServer::start());
    server.sql(
        "CREATE TABLE account (id int PRIMARY KEY, version int NOT NULL DEFAULT 0, balance int);
         INSERT INTO account VALUES (1, 0, 5)",
    );
    let own = connect(&server).await.version("1").on_table(ACCOUNT);
    own.read::<u32>().await.unwrap();
    let other = server.clone();
    let transaction = tokio::task::spawn_blocking(move || {
        other.sql("BEGIN; UPDATE account SET balance = 50, version = version + 1; SELECT pg_sleep(0.5); COMMIT")
    });
    while server.sql("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'") == "0" {
        tokio::task::yield_now().await;
    }
    let updated = own.update(|value: Option<u32>| Some(value? + 1)).await.unwrap().unwrap();
    assert_eq!((updated.value, updated.version.get()), (51, 2));
    transaction.await.unwrap();
}
