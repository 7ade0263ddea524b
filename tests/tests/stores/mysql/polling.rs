//! Clients that wait look at what they are told, on a real MariaDB.

use std::time::{Duration, Instant};

use fencelock_tests::database::connect;
use fencelock_tests::database_faults;
use fencelock_tests::mysql::MysqlServer;
use fencelock_tests::session_store::{PATIENCE, waiting};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn u12_more_clients_than_connections_get_their_turns() {
    let (clients, most) = if fencelock_tests::in_full() { (200, 151) } else { (40, 30) };
    let server = MysqlServer::start_with(&[&format!("max-connections={most}")]);
    database_faults::more_clients_than_connections_get_their_turns(server, clients).await;
}

/// A client that waits has the connections it had before.
#[tokio::test]
async fn a_waiter_has_one_connection() {
    let server = MysqlServer::start();
    let holder = connect(&server.place("a")).await;
    let guard = holder.lock("x").acquire().await.unwrap();
    server.sql("CREATE USER b; GRANT ALL ON a.* TO b");
    let waits = connect(&server.url("a").replace("a@", "b@")).await;
    let turn = tokio::spawn(waits.lock("x").acquire_within(PATIENCE));
    waiting(&holder, "x", 1).await;
    let (began, mut most) = (Instant::now(), 0);
    while began.elapsed() < Duration::from_secs(2) {
        most = most.max(server.connections("b"));
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    // A look may fall together with a refresh.
    assert!((1..=2).contains(&most), "{most} connections");
    // That it is another user's client changes nothing.
    guard.release().await.check().unwrap();
    turn.await.unwrap().expect("it looks").release().await.check().unwrap();
}
