//! The connections in which clients wait to be woken, on a real MariaDB.

use std::time::{Duration, Instant};

use fencelock::{Client, Code};
use fencelock_tests::database::connect;
use fencelock_tests::mysql::MysqlServer;
use fencelock_tests::session_store::{PATIENCE, waiting};
use futures_util::future::join_all;

const WAITERS: usize = 12;

/// How many connections are in this state.
fn in_state(server: &MysqlServer, state: &str) -> usize {
    let count =
        format!("SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE STATE = '{state}'");
    server.sql(&count).parse().expect("the server counts")
}

async fn turn(client: Client) {
    client.lock("x").acquire().await.unwrap().release().await.check().unwrap();
}

/// How many of the listeners are in `SLEEP`, when so many listen.
async fn sleepers_of(server: &MysqlServer, listeners: usize) -> usize {
    let began = Instant::now();
    loop {
        let sleepers = in_state(server, "User sleep");
        if sleepers + in_state(server, "User lock") == listeners {
            return sleepers;
        }
        assert!(began.elapsed() < PATIENCE, "{listeners} should listen");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// How many of twelve listeners are in `SLEEP`. All are served.
async fn sleepers() -> usize {
    let server = MysqlServer::start();
    let url = server.place("a");
    let clients = join_all((0..=WAITERS).map(|_| connect(&url))).await;
    let holder = clients[0].lock("x").acquire().await.unwrap();
    let waits: Vec<_> =
        clients[1..].iter().map(|client| tokio::spawn(turn(client.clone()))).collect();
    let sleepers = sleepers_of(&server, WAITERS).await;
    holder.release().await.check().unwrap();
    for wait in waits {
        tokio::time::timeout(PATIENCE, wait).await.expect("it is woken").unwrap();
    }
    sleepers
}

/// The connection that keeps what listeners wait for, another one than `former`.
async fn keeper(server: &MysqlServer, former: &str) -> String {
    let began = Instant::now();
    loop {
        let keeper = server.sql("SELECT COALESCE(IS_USED_LOCK('fencelock_listeners'), '')");
        if !keeper.is_empty() && keeper != former {
            return keeper;
        }
        assert!(began.elapsed() < PATIENCE, "nobody keeps it");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// If the connection ends that keeps what listeners wait for, or its client goes, another client keeps it. All listen, and are served.
#[tokio::test]
async fn whoever_keeps_what_listeners_wait_for_may_go() {
    let server = MysqlServer::start();
    let url = server.place("a");
    let clients = join_all((0..=WAITERS).map(|_| connect(&url))).await;
    let holder = clients[0].lock("x").acquire().await.unwrap();
    let wait = |client: &Client| tokio::spawn(turn(client.clone()));
    let goes = tokio::spawn(clients[1].lock("x").acquire());
    assert_eq!(sleepers_of(&server, 1).await, 0);
    let mut former = keeper(&server, "").await;
    let waits: Vec<_> = clients[2..].iter().map(wait).collect();
    sleepers_of(&server, WAITERS).await;
    clients[1].close().await;
    assert_eq!(goes.await.unwrap().unwrap_err().code(), Code::Closed);
    for _ in 0..3 {
        let next = keeper(&server, &former).await;
        sleepers_of(&server, WAITERS - 1).await;
        server.sql(&format!("KILL {next}"));
        former = next;
    }
    let last = keeper(&server, &former).await;
    sleepers_of(&server, WAITERS - 1).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(keeper(&server, "").await, last, "it is kept");
    holder.release().await.check().unwrap();
    for wait in waits {
        tokio::time::timeout(PATIENCE, wait).await.expect("it is woken").unwrap();
    }
}

/// Whoever wakes a sleeper may keep the server from taking connections, for up to two seconds.
#[tokio::test]
async fn no_listener_sleeps() {
    assert_eq!(sleepers().await, 0);
}

/// Only the same user may be woken. A hand-over to another user's client is none the less a hand-over, and that one looks by the clock.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_may_not_be_woken_is_no_failure_of_a_release() {
    let server = MysqlServer::start();
    let one = connect(&server.place("a")).await;
    server.sql("CREATE USER b; GRANT ALL ON a.* TO b");
    let two = connect(&server.url("a").replace("a@", "b@")).await;
    for _ in 0..3 {
        let guard = one.lock("x").acquire_within(PATIENCE).await.unwrap();
        let waits = tokio::spawn(two.lock("x").acquire_within(PATIENCE));
        waiting(&one, "x", 1).await;
        assert_eq!(sleepers_of(&server, 1).await, 0);
        guard.release().await.check().unwrap();
        waits.await.unwrap().expect("it looks").release().await.check().unwrap();
    }
}
