//! The cost of locks on PostgreSQL: statements are counted, times are printed beside those of bare statements.

use std::time::{Duration, Instant};

use fencelock::driver::postgres::PostgresStore;
use fencelock::options::Options;
use fencelock_tests::database::connect;
use fencelock_tests::peer::{Peer, runtime};
use fencelock_tests::postgres::PostgresServer;
use fencelock_tests::turns::{Turns, all_take, bare_pairs, median, pairs};
use tokio_postgres::NoTls;

const PATIENCE: Duration = Duration::from_secs(60);

/// How often rows of locks were written so far. A backend tells its own when it ends, so nobody else may be connected. (A notice makes a
/// transaction of every client that listens, so those tell nothing.)
fn written(server: &PostgresServer) -> u64 {
    let began = Instant::now();
    while server.connections("a") != 0 {
        assert!(began.elapsed() < PATIENCE, "all connections are closed");
    }
    let told = "SELECT n_tup_ins + n_tup_upd FROM pg_stat_user_tables WHERE schemaname = 'a' AND relname = 'fencelock'";
    server.sql(told).parse().expect("the server counts")
}

/// A statement that the server compiles takes it a hundred milliseconds.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_statement_is_compiled() {
    const COMPILES: &str = "probing availability of JIT provider";
    let server = PostgresServer::start_with(&["log_min_messages=debug1"]);
    let table = server.place("a");
    for url in [table.replacen("postgres", "postgres+advisory", 1), table] {
        let client = connect(&url).await;
        let held = client.read_lock("x").acquire().await.unwrap();
        let waits = tokio::spawn(client.write_lock("x").acquire_within(PATIENCE));
        while client.read_lock("x").inspect().await.unwrap().waiters.is_empty() {}
        let _ = client.names("").await;
        held.release().await.check().unwrap();
        waits.await.unwrap().unwrap().release().await.check().unwrap();
    }
    assert!(!server.log().contains(COMPILES));
    server.sql(
        "SET jit = on; SET jit_above_cost = 0; SELECT sum(x) FROM generate_series(1, 10) AS x",
    );
    assert!(server.log().contains(COMPILES), "the server tells of it");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_uncontended_pair_is_two_statements() {
    const PAIRS: usize = 1000;
    let server = PostgresServer::start();
    let url = server.place("a");
    drop(connect(&url).await);
    let before = written(&server);
    let client = connect(&url).await;
    let times = pairs(&client, PAIRS).await;
    drop(client);
    let spent = written(&server) - before;
    // A renewal comes where the machine stands still for long.
    assert!(spent <= 2 * PAIRS as u64 + 10, "{spent} writes for {PAIRS} pairs");

    let (bare, connection) = tokio_postgres::connect(&server.url("a"), NoTls).await.unwrap();
    tokio::spawn(connection);
    bare.batch_execute(
        "CREATE TABLE bare (name text PRIMARY KEY, owner text); INSERT INTO bare VALUES ('x')",
    )
    .await
    .unwrap();
    let take = "UPDATE bare SET owner = $2 WHERE name = $1 AND owner IS NULL";
    let free = "UPDATE bare SET owner = NULL WHERE name = $1 AND owner = $2";
    let (take, free) = (bare.prepare(take).await.unwrap(), bare.prepare(free).await.unwrap());
    let mut twos = Vec::with_capacity(PAIRS);
    for _ in 0..PAIRS {
        let began = Instant::now();
        assert_eq!(bare.execute(&take, &[&"x", &"me"]).await.unwrap(), 1);
        assert_eq!(bare.execute(&free, &[&"x", &"me"]).await.unwrap(), 1);
        twos.push(began.elapsed());
    }
    let (plain, options) = (server.url("a").parse().unwrap(), Options::default());
    let store = PostgresStore::connect(&plain, &[], &options, runtime()).await.unwrap();
    let peer = Peer::over(store).await;
    let steps = bare_pairs(&peer, PAIRS).await;
    println!(
        "pair {:?}, the store's two steps {:?}, two bare statements {:?}",
        median(times),
        median(steps),
        median(twos)
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waiters_cost_few_transactions_and_keep_their_order() {
    // Each waiter refreshes its place in a row that holds all of them: on a machine with other work that many stand still.
    let (waiters, rounds) = if fencelock_tests::in_full() { (64, 100) } else { (16, 8) };
    let server = PostgresServer::start();
    let url = format!("{}&durability=relaxed", server.place("a"));
    drop(connect(&url).await);
    let mut clients = Vec::new();
    let before = written(&server);
    for _ in 0..waiters {
        clients.push(connect(&url).await);
    }
    let Turns { took, acquired, least, most } = all_take(clients, rounds).await;
    let spent = written(&server) - before;
    let each = spent as f64 / acquired as f64;
    println!(
        "{acquired} acquisitions by {waiters} clients in {took:?}, {each:.2} writes each; of {rounds} turns each had {least} to {most}"
    );
    // The count may begin and end within a round.
    assert!(most - least <= 2, "in order: from {least} to {most}");
    // Take and Free, a renewal of what was handed over; and each waiter looks once a second.
    let looks = took.as_secs_f64() * f64::from(waiters) / acquired as f64;
    assert!(each <= 3.5 + looks, "{each} writes for each, {looks} of them looks");
}
