//! Versions in a table of the user's own, on every database.

use std::future::Future;
use std::time::Duration;

use fencelock::{Client, Code, Error, Swapped, Version};
use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::in_full;

const ACCOUNT: &str = "account(id, version, balance)";

/// A database with tables of the user's own.
pub trait Tables: Sync {
    /// A client that may read and change these tables.
    fn client(&self) -> impl Future<Output = Client>;

    /// Runs statements as their owner; what they print, one line for each row, with `|` between the columns.
    fn sql(&self, statements: &str) -> String;
}

/// A written value has the column's own type, and no other column changes. Each column, the value written, the value then stored.
pub async fn keeps_types(on: &impl Tables, make: &str, columns: &[(&str, Value, &str)]) {
    on.sql(make);
    let client = on.client().await;
    let mut version = Version::new(3);
    for (column, value, stored) in columns {
        let name = "9007199254740993";
        let own = client.version(name).on_table(&format!("kinds (number, The Version, {column} )"));
        let before = own.read::<Value>().await.unwrap().expect("the row is there");
        assert_eq!(before.version, version, "{column}");
        let Swapped::Done(next) = own.compare_and_set(Some(version), value).await.unwrap() else {
            panic!("nobody else is there");
        };
        assert_eq!(next.get(), version.get() + 1);
        version = next;
        assert_eq!(on.sql(&format!("SELECT {column} FROM kinds")), *stored, "{column}");
        let after = own.read::<Value>().await.unwrap().expect("the row is there");
        assert_eq!((&after.value, after.version), (value, version), "{column}");
    }
    assert_eq!(on.sql("SELECT rest FROM kinds"), "kept");
}

/// A slower writer gets the value that is there; nothing is made or deleted.
pub async fn refuses_late_changes(on: &impl Tables) {
    on.sql(
        "CREATE TABLE account (id int PRIMARY KEY, version bigint NOT NULL DEFAULT 0, balance int);
         INSERT INTO account VALUES (42, 0, 100)",
    );
    let client = on.client().await;
    let own = client.version("42").on_table(ACCOUNT);
    let first = own.read::<u32>().await.unwrap().unwrap();
    assert_eq!((first.value, first.version.get()), (100, 0));
    // The application's own way to change it.
    on.sql("UPDATE account SET balance = 60, version = version + 1 WHERE id = 42");
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
    let kept = client.version("42").on_table(ACCOUNT).keep(Duration::from_secs(1));
    let error = kept.compare_and_set(Some(updated.version), &1).await.unwrap_err();
    assert_eq!(error.code(), Code::Unsupported, "{error}");
    assert_eq!(on.sql("SELECT count(*), sum(balance), sum(version) FROM account"), "1|10|2");
}

/// S9: 64 workers change one balance, ten times each; with `FENCELOCK_FULL=1` a thousand times.
pub async fn counts_everybody(on: &impl Tables) {
    on.sql(
        "CREATE TABLE account (id int PRIMARY KEY, version bigint NOT NULL DEFAULT 0, balance int);
         INSERT INTO account VALUES (1, 0, 0)",
    );
    let times = if in_full() { 1000 } else { 10 };
    let clients = join_all((0..4).map(|_| on.client())).await;
    let workers = (0..64).map(|worker| {
        let own = clients[worker % 4].version("1").on_table(ACCOUNT).retries(1_000_000);
        tokio::spawn(async move {
            for _ in 0..times {
                own.update(|value: Option<i64>| Some(value? + 1)).await.unwrap().unwrap();
            }
        })
    });
    for worker in join_all(workers).await {
        worker.unwrap();
    }
    let all = 64 * times;
    assert_eq!(on.sql("SELECT balance, version FROM account"), format!("{all}|{all}"));
}

/// Each fault of the table is reported, with what to do.
pub async fn tells_what_is_wrong(on: &impl Tables) {
    on.sql(
        "CREATE TABLE account (id int PRIMARY KEY, version int NOT NULL DEFAULT 0, balance int CHECK (balance >= 0), twice int, words varchar(9));
         INSERT INTO account VALUES (1, 0, 5, 1, ''), (2, -1, 5, 1, '')",
    );
    let client = on.client().await;
    let read = async |name: &str, table: &str| -> Result<Value, Error> {
        Ok(json!(client.version(name).on_table(table).read::<Value>().await?))
    };
    for (table, says) in [
        ("account", "three of its columns"),
        ("account(id, version)", "three of its columns"),
        ("account(id, version, version)", "three of its columns"),
        ("a.b.account(id, version, balance)", "three of its columns"),
        ("account(id, version, )", "bytes"),
        ("none(id, version, balance)", "there is no table"),
        ("none.account(id, version, balance)", "there is no table"),
        ("account(other, version, balance)", "no column `other`"),
        ("account(id, counter, balance)", "no column `counter`"),
        ("account(id, version, balance; DROP TABLE account)", "no column `balance; DROP"),
        ("account(id, version, \"balance\" FROM account; --)", "no column `\"balance\""),
        ("account(id, version, `balance` FROM account; --)", "no column ``balance`"),
        ("account(id, words, balance)", "whole numbers"),
        ("account(twice, version, balance)", "primary key, or unique"),
    ] {
        let error = read("1", table).await.expect_err(table);
        let argument = error.fields().get("argument").map(|argument| &**argument);
        assert_eq!((error.code(), argument), (Code::Invalid, Some("on_table")), "{table}: {error}");
        assert!(error.message().contains(says), "{table}: {error}");
    }
    let own = client.version("1").on_table(ACCOUNT);
    let code = async |value: Value| {
        own.compare_and_set(Some(Version::new(0)), &value).await.expect_err("it is wrong").code()
    };
    assert_eq!(code(json!(-5)).await, Code::Conflict);
    assert_eq!(code(json!("many")).await, Code::Invalid);
    for name in ["one", "1x", "1.0"] {
        let found = read(name, ACCOUNT).await;
        assert!(found.is_err() || found.unwrap() == Value::Null, "`{name}` is the name of no row");
    }
    assert_eq!(read("2", ACCOUNT).await.unwrap_err().code(), Code::Conflict);
    assert_eq!(on.sql("SELECT balance, version FROM account WHERE id = 1"), "5|0");

    // A table that has become another is looked at again.
    on.sql("ALTER TABLE account RENAME COLUMN words TO letters");
    let words = client.version("1").on_table("account(id, version, words)");
    assert!(words.read::<Value>().await.is_err());
    let letters = client.version("1").on_table("account(id, version, letters)");
    assert_eq!(letters.read::<String>().await.unwrap().unwrap().value, "");
    on.sql("ALTER TABLE account RENAME COLUMN letters TO words");
    assert!(letters.read::<Value>().await.is_err());
    let error = letters.read::<Value>().await.unwrap_err();
    assert!(error.message().contains("no column `letters`"), "{error}");
    assert_eq!(words.read::<String>().await.unwrap().unwrap().value, "");
}
