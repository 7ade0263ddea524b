//! What locks on PostgreSQL cost: statements are counted, times are printed beside those of bare statements.

use std::time::{Duration, Instant};

use fencelock::Client;
use fencelock::driver::postgres::PostgresStore;
use fencelock::options::Options;
use fencelock::port::Outcome;
use fencelock_tests::peer::{Peer, runtime};
use fencelock_tests::postgres::PostgresServer;
use tokio_postgres::NoTls;

const PATIENCE: Duration = Duration::from_secs(60);

async fn connect(url: &str) -> Client {
    fencelock::connect(url).await.expect("the server takes connections")
}

/// How often rows of locks were written so far. A backend tells its own when it ends, so nobody else may be connected. (A notice makes a
/// transaction of every client that listens, so those tell nothing.)
fn written(server: &PostgresServer) -> u64 {
    let others = "SELECT count(*) FROM pg_stat_activity WHERE usename = 'a'";
    let began = Instant::now();
    while server.sql(others) != "0" {
        assert!(began.elapsed() < PATIENCE, "all connections are closed");
    }
    let told = "SELECT n_tup_ins + n_tup_upd FROM pg_stat_user_tables WHERE schemaname = 'a' AND relname = 'fencelock'";
    server.sql(told).parse().expect("the server counts")
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_uncontended_pair_is_two_statements() {
    const PAIRS: usize = 1000;
    let server = PostgresServer::start();
    let url = server.place("a");
    drop(connect(&url).await);
    let before = written(&server);
    let client = connect(&url).await;
    let lock = client.lock("x");
    let mut pairs = Vec::with_capacity(PAIRS);
    for _ in 0..PAIRS {
        let began = Instant::now();
        lock.acquire().await.unwrap().release().await.check().unwrap();
        pairs.push(began.elapsed());
    }
    drop((lock, client));
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
    let mut steps = Vec::with_capacity(PAIRS);
    for _ in 0..PAIRS {
        let began = Instant::now();
        let (owner, taken) = peer.try_take("y", Duration::from_secs(30)).await;
        assert!(matches!(taken, Ok(Outcome::Granted { .. })), "{taken:?}");
        peer.free("y", owner).await.unwrap();
        steps.push(began.elapsed());
    }
    println!(
        "pair {:?}, the store's two steps {:?}, two bare statements {:?}",
        median(pairs),
        median(steps),
        median(twos)
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waiters_cost_few_transactions_and_keep_their_order() {
    const WAITERS: usize = 64;
    let turns: u64 = if fencelock_tests::in_full() { 100 } else { 8 };
    let server = PostgresServer::start();
    let url = format!("{}&durability=relaxed", server.place("a"));
    drop(connect(&url).await);
    let mut clients = Vec::new();
    let before = written(&server);
    for _ in 0..WAITERS {
        clients.push(connect(&url).await);
    }
    let began = Instant::now();
    let tasks = clients.into_iter().map(|client| {
        tokio::spawn(async move {
            let mut ends = Vec::new();
            for _ in 0..turns {
                let guard = client.lock("x").acquire_within(PATIENCE).await.unwrap();
                ends.push(guard.token());
                guard.release().await.check().unwrap();
            }
            ends
        })
    });
    let mut tokens = Vec::new();
    for (number, task) in tasks.collect::<Vec<_>>().into_iter().enumerate() {
        tokens.extend(task.await.unwrap().into_iter().map(|token| (token, number)));
    }
    let took = began.elapsed();
    let spent = written(&server) - before;
    let acquired = WAITERS as u64 * turns;
    tokens.sort_unstable();
    // While all of them wait, each has its turn in each round.
    let half = &tokens[..tokens.len() / 2];
    let share = |number| half.iter().filter(|(_, of)| *of == number).count();
    let (least, most) =
        (0..WAITERS).map(share).fold((usize::MAX, 0), |(a, b), n| (a.min(n), b.max(n)));
    let each = spent as f64 / acquired as f64;
    println!(
        "{acquired} acquisitions by {WAITERS} clients in {took:?}, {each:.2} writes each; shares of the first half {least} to {most}"
    );
    assert!(most - least <= 2, "in order: from {least} to {most}");
    // Take and Free, a renewal of what was handed over, looks once a second.
    assert!(each <= 4.0, "{each} writes for each");
}
