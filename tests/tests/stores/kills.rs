//! Holders that die or freeze under load, as programs on real stores: what they guard stays exact, the next grant comes in
//! time, and nothing is left of them.
//!
//! 20 kills a store; 200 with `FENCELOCK_FULL=1`.

use std::time::Duration;

use fencelock_peers::Program;
use fencelock_tests::clerk::Post;
use fencelock_tests::database_sessions::{DatabaseSessions, Way};
use fencelock_tests::mysql::{MysqlServer, MysqlSessions};
use fencelock_tests::postgres::{PostgresServer, PostgresSessions};
use fencelock_tests::servers::RedisServer;
use fencelock_tests::shop::{self, NEXT_GRANT, TTL};

/// For a lease that has not to end.
const LONG: Duration = Duration::from_secs(20);

fn kills() -> usize {
    if fencelock_tests::in_full() { 200 } else { 20 }
}

fn actor() -> Program {
    Program::new(env!("CARGO_BIN_EXE_actor"))
}

async fn kill_holders(url: &str) {
    shop::kill_clerks(url, &vec![Post::Actor(actor()); 4], kills()).await;
}

async fn freeze_holders(url: &str) {
    shop::freeze_holders(&actor(), url, kills() / 4, [TTL, LONG], NEXT_GRANT).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_holders_on_redis() {
    let server = RedisServer::start();
    kill_holders(server.url().as_str()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_holders_in_sqlite() {
    let folder = tempfile::tempdir().unwrap();
    kill_holders(&format!("sqlite:{}", folder.path().join("locks.db").display())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn frozen_holders_on_redis() {
    let server = RedisServer::start();
    freeze_holders(server.url().as_str()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn frozen_holders_in_sqlite() {
    let folder = tempfile::tempdir().unwrap();
    freeze_holders(&format!("sqlite:{}", folder.path().join("locks.db").display())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_holders_on_postgres() {
    let server = PostgresServer::start();
    kill_holders(&server.place("shop")).await;
}

/// The lease of a dead holder does not count: its session ends with its process.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_holders_on_postgres_by_session() {
    kill_holders_by_session::<PostgresSessions>(Way::Names).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_holders_on_postgres_by_row() {
    kill_holders_by_session::<PostgresSessions>(Way::Rows).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_holders_on_mariadb_by_session() {
    kill_holders_by_session::<MysqlSessions>(Way::Names).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_holders_on_mariadb_by_row() {
    kill_holders_by_session::<MysqlSessions>(Way::Rows).await;
}

async fn kill_holders_by_session<S: DatabaseSessions>(way: Way) {
    let server = S::start(way);
    kill_holders(&server.at(server.port(), "?ttl=20s")).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_holders_on_mariadb() {
    let server = MysqlServer::start();
    kill_holders(&server.place("shop")).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn frozen_holders_on_postgres() {
    let server = PostgresServer::start();
    freeze_holders(&server.place("shop")).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn frozen_holders_on_mariadb() {
    let server = MysqlServer::start();
    freeze_holders(&server.place("shop")).await;
}
