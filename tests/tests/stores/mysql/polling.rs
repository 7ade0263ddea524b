//! Clients that wait look at what they are told, on a real MariaDB.

use std::time::{Duration, Instant};

use fencelock::Client;
use fencelock_tests::database::connect;
use fencelock_tests::mysql::MysqlServer;
use fencelock_tests::session_store::{PATIENCE, waiting};
use futures_util::future::join_all;

/// More clients than the server has connections, each of which waits: all get their turns, in order.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn u12_waiters_need_no_connection_of_their_own() {
    const CLIENTS: usize = 40;
    let server = MysqlServer::start_with(&["max-connections=30"]);
    let url = server.place("a");
    let turns = |at: usize| {
        let url = url.clone();
        async move {
            let options = Client::builder().option("connect_timeout", "60s");
            let client: Client = options.connect(&url).await.unwrap();
            for turn in 0..2 {
                let guard = client.lock("x").acquire_within(PATIENCE).await;
                let guard = guard.unwrap_or_else(|error| panic!("client {at}, {turn}: {error}"));
                guard.release().await.check().unwrap();
            }
            client.close().await;
        }
    };
    join_all((0..CLIENTS).map(|at| tokio::spawn(turns(at))))
        .await
        .into_iter()
        .for_each(Result::unwrap);
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
