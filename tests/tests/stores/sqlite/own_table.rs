//! Versions in a table of the user's own, in a SQLite file.

use std::time::Duration;

use fencelock::Client;
use fencelock_tests::own_table::{
    Tables, counts_everybody, keeps_types, refuses_late_changes, tells_what_is_wrong,
};
use rusqlite::Connection;
use rusqlite::types::Value as Stored;
use serde_json::{Value, json};
use tempfile::TempDir;

struct On(TempDir);

impl On {
    fn start() -> Self {
        Self(tempfile::tempdir().unwrap())
    }
}

impl Tables for On {
    const STRICT: bool = false;

    async fn client(&self) -> Client {
        let url = format!("sqlite:{}", self.0.path().join("app.db").display());
        fencelock::connect(&url).await.unwrap()
    }

    fn sql(&self, statements: &str) -> String {
        let connection = Connection::open(self.0.path().join("app.db")).unwrap();
        connection.busy_timeout(Duration::from_secs(5)).unwrap();
        if !statements.starts_with("SELECT") {
            connection.execute_batch(statements).unwrap();
            return String::new();
        }
        let mut statement = connection.prepare(statements).unwrap();
        let columns = statement.column_count();
        let shown = |value| match value {
            Stored::Null => String::new(),
            Stored::Integer(number) => number.to_string(),
            Stored::Real(number) => number.to_string(),
            Stored::Text(text) => text,
            Stored::Blob(bytes) => format!("{bytes:?}"),
        };
        let row = statement.query_row([], |row| {
            (0..columns).map(|at| row.get(at).map(shown)).collect::<Result<Vec<_>, _>>()
        });
        row.unwrap().join("|")
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn values_are_of_the_columns_own_types() {
    let make = r#"CREATE TABLE kinds (number INTEGER PRIMARY KEY, "The Version" INTEGER NOT NULL DEFAULT 3, amount REAL, whole INT,
            words TEXT, document JSON, flag BOOLEAN, rest TEXT DEFAULT 'kept');
        INSERT INTO kinds (number) VALUES (9007199254740993)"#;
    let columns = [
        ("amount", json!(12.5), "12.5"),
        ("whole", json!(-7), "-7"),
        ("words", json!("a 'b' \"c\" ö"), "a 'b' \"c\" ö"),
        ("document", json!({"a": [1, null, "x"]}), r#"{"a":[1,null,"x"]}"#),
        ("flag", json!(true), "1"),
        ("whole", Value::Null, ""),
    ];
    keeps_types(&On::start(), make, &columns).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_that_came_too_late_is_refused() {
    refuses_late_changes(&On::start()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s9_updates_of_everybody_are_all_counted() {
    counts_everybody(&On::start()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_wrong_with_a_table_is_told() {
    tells_what_is_wrong(&On::start()).await;
}
