//! U20, U21: connections that are ended, that are ended while the process is frozen, or that are dropped on the way without a word while
//! nobody uses them. Each try has a free lock within two seconds, on every store but a quorum. Two of each; with `FENCELOCK_FULL=1` 20.

use std::time::{Duration, Instant};

use fencelock::port::Mode;
use fencelock_peers::Program;
use fencelock_tests::conformance::player::Player;
use fencelock_tests::database::{DatabaseServer, connect};
use fencelock_tests::database_sessions::{DatabaseSessions, Way};
use fencelock_tests::etcd::{self, EtcdServer};
use fencelock_tests::mysql::{MysqlServer, MysqlSessions};
use fencelock_tests::postgres::{PostgresServer, PostgresSessions};
use fencelock_tests::protocol::{Call, End, Grant, Options};
use fencelock_tests::proxy::Proxy;
use fencelock_tests::servers::RedisServer;
use fencelock_tests::shop;
use fencelock_tests::zookeeper::{self, ZookeeperServer};
use serde::Deserialize;

const WITHIN: Duration = Duration::from_secs(2);
/// So long nobody uses a connection that was dropped: longer than a session without an answer lasts here.
const IDLE: Duration = Duration::from_secs(6);
const SESSION: &str = "?ttl=4s";

#[derive(Clone, Copy, Debug)]
enum Fault {
    Ended,
    EndedWhileFrozen,
    Dropped,
}

/// Tries to get a free lock, and gives it back; with `wait` for as long as that may take.
async fn take(actor: &Player, wait: Option<f64>, go: impl FnOnce()) -> Result<(), String> {
    let (mode, options) = (Mode::default(), Options::new());
    let call = Call::Try { lock: "x".into(), mode, permits: None, scope: None, options, wait };
    let began = Instant::now();
    let answer = actor.ask(call).end;
    go();
    let answer = answer.await.expect("the actor lives").end;
    let took = began.elapsed();
    let granted = match answer {
        End::Ok(value) => Grant::deserialize(value).map_err(|_| format!("busy after {took:?}"))?,
        End::Error(refusal) => return Err(format!("{refusal:?} after {took:?}")),
    };
    shop::ask(actor, Call::Release { guard: granted.guard }).await;
    if took < WITHIN { Ok(()) } else { Err(format!("it took {took:?}")) }
}

/// Of a client that reaches the server on this port through a proxy.
async fn a_free_lock_is_had(port: u16, url: impl Fn(u16) -> String) {
    let proxy = Proxy::before(port).await;
    let url = url(proxy.url().port().expect("a proxy has a port"));
    let rounds = if fencelock_tests::in_full() { 20 } else { 2 };
    let actor = shop::start(&Program::new(env!("CARGO_BIN_EXE_actor")), &url).await;
    let mut failed = Vec::new();
    for fault in [Fault::Ended, Fault::EndedWhileFrozen, Fault::Dropped] {
        for round in 0..rounds {
            // What came of the try before is of no interest to this one.
            while take(&actor, Some(20_000.0), || {}).await.is_err() {}
            match fault {
                Fault::Ended => proxy.cut(),
                Fault::EndedWhileFrozen => {
                    actor.freeze(true);
                    proxy.cut();
                }
                Fault::Dropped => {
                    // It never comes through.
                    std::mem::forget(proxy.hold_requests());
                    tokio::time::sleep(IDLE).await;
                }
            }
            let wait = (round % 2 == 1).then_some(WITHIN.as_secs_f64() * 1000.0);
            let frozen = matches!(fault, Fault::EndedWhileFrozen);
            let go = || {
                if frozen {
                    actor.freeze(false);
                }
            };
            if let Err(why) = take(&actor, wait, go).await {
                failed.push(format!("{fault:?}, round {round}: {why}"));
            }
        }
    }
    assert!(failed.is_empty(), "{} of {}: {failed:#?}", failed.len(), 3 * rounds);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn u20_u21_on_redis() {
    let server = RedisServer::start();
    a_free_lock_is_had(server.port(), |port| format!("redis://127.0.0.1:{port}")).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn u20_u21_on_etcd() {
    let server = EtcdServer::start();
    a_free_lock_is_had(server.port(), |port| format!("{}{SESSION}", etcd::url(port, "p"))).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn u20_u21_on_zookeeper() {
    let server = ZookeeperServer::start();
    a_free_lock_is_had(server.port(), |port| format!("{}{SESSION}", zookeeper::url(port, "p")))
        .await;
}

async fn on_a_table<S: DatabaseServer>() {
    let server = S::start();
    drop(connect(&server.place("a")).await);
    a_free_lock_is_had(server.port(), |port| S::url_at(port, "a")).await;
}

async fn by_session<S: DatabaseSessions>(way: Way) {
    let server = S::start(way);
    a_free_lock_is_had(server.port(), |port| server.at(port, SESSION)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn u20_u21_on_postgres() {
    on_a_table::<PostgresServer>().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn u20_u21_on_postgres_by_session() {
    by_session::<PostgresSessions>(Way::Names).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn u20_u21_on_postgres_by_row() {
    by_session::<PostgresSessions>(Way::Rows).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn u20_u21_on_mariadb() {
    on_a_table::<MysqlServer>().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn u20_u21_on_mariadb_by_session() {
    by_session::<MysqlSessions>(Way::Names).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn u20_u21_on_mariadb_by_row() {
    by_session::<MysqlSessions>(Way::Rows).await;
}
