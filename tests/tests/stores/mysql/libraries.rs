//! Locks of other libraries' tables and fencelock's, on a real MariaDB.

use std::path::Path;

use fencelock_peers::MYSQL_TABLES;
use fencelock_tests::foreign_tables::{exclude_each_other, library};
use fencelock_tests::mysql::MysqlServer;

/// The rows left in the library's table, or nothing if the machine lacks Java.
async fn left(dialect: &str, setting: &str, count: &str) -> Option<String> {
    let server = MysqlServer::start_with(&[setting]);
    let url = server.place("shop");
    server.sql(&format!("USE shop; {MYSQL_TABLES}"));
    let jdbc = format!("jdbc:mariadb://127.0.0.1:{}/shop?user=shop", server.port());
    let library = library(Path::new(env!("CARGO_BIN_EXE_actor")), dialect, &jdbc)?;
    exclude_each_other(&server, &url, dialect, library).await;
    Some(server.sql(count))
}

/// It writes UTC into a column that the server keeps in the session's time zone, which is seven hours from it here.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shedlock_and_fencelock_exclude_each_other() {
    let count = "SELECT COUNT(*) FROM shop.shedlock WHERE name IN ('x', 'n')";
    let left = left("shedlock", "default-time-zone=+07:00", count).await;
    assert!(left.is_none_or(|left| left == "2"), "both keep the rows");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn spring_and_fencelock_exclude_each_other() {
    let left = left("spring", "max-connections=200", "SELECT COUNT(*) FROM shop.INT_LOCK").await;
    assert!(left.is_none_or(|left| left == "0"), "both delete the rows of free locks");
}
