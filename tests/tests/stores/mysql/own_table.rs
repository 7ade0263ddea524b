//! Versions in a table of the user's own, on MariaDB.

use fencelock::{Client, Code};
use fencelock_tests::mysql::MysqlServer;
use fencelock_tests::own_table::{
    Tables, counts_everybody, keeps_types, refuses_late_changes, tells_what_is_wrong,
};
use serde_json::{Value, json};

struct On(MysqlServer);

impl On {
    fn start() -> Self {
        let server = MysqlServer::start();
        server.sql(
            "CREATE DATABASE app; CREATE USER app; GRANT ALL ON app.* TO app; CREATE USER poor",
        );
        Self(server)
    }

    async fn client_of(&self, user: &str) -> Client {
        let url = format!("mysql://{user}@127.0.0.1:{}/app?create=true", self.0.port());
        fencelock::connect(&url).await.unwrap()
    }
}

impl Tables for On {
    async fn client(&self) -> Client {
        self.client_of("app").await
    }

    fn sql(&self, statements: &str) -> String {
        self.0.sql(&format!("USE app; {statements}")).replace('\t', "|")
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn values_are_of_the_columns_own_types() {
    let make = "CREATE TABLE kinds (number bigint PRIMARY KEY, `The Version` smallint NOT NULL DEFAULT 3, amount decimal(10, 2), whole int,
            words varchar(12) CHARACTER SET utf8mb4, document json, day date, rest varchar(9) DEFAULT 'kept');
        INSERT INTO kinds (number) VALUES (9007199254740993)";
    let columns = [
        ("amount", json!(12.5), "12.50"),
        ("whole", json!(-7), "-7"),
        ("words", json!("a 'b' \"c\""), "a 'b' \"c\""),
        ("document", json!({"a": [1, null, "x"]}), r#"{"a":[1,null,"x"]}"#),
        ("day", json!("2026-02-28"), "2026-02-28"),
        ("whole", Value::Null, "NULL"),
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
    let server = On::start();
    tells_what_is_wrong(&server).await;
    server.sql("CREATE TABLE loose (id int PRIMARY KEY, version int, value int) ENGINE=Aria");
    let loose = server.client().await;
    let loose = loose.version("1").on_table("loose(id, version, value)").read::<Value>().await;
    let error = loose.unwrap_err();
    assert!(error.message().contains("no table with transactions"), "{error}");
    server.sql("GRANT SELECT ON fencelock TO poor; GRANT SELECT ON fencelock_cell TO poor; GRANT SELECT ON account TO poor");
    let own = server.client_of("poor").await.version("1").on_table("account(id, version, balance)");
    let update = async || own.update(|value: Option<u32>| Some(value? + 1)).await;
    let error = update().await.unwrap_err();
    assert!(error.code() == Code::Auth && error.message().contains("your table"), "{error}");
    server.sql("GRANT UPDATE ON account TO poor");
    update().await.expect("no more is needed");
}
