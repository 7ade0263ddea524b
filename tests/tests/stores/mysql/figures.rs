//! The cost of locks on MySQL or MariaDB: the server counts statements, times are printed beside those of bare statements.

use std::collections::BTreeMap;
use std::time::Instant;

use fencelock::driver::mysql::MysqlStore;
use fencelock::options::Options;
use fencelock_tests::database::connect;
use fencelock_tests::mysql::MysqlServer;
use fencelock_tests::peer::{Peer, runtime};
use fencelock_tests::turns::{Turns, all_take, bare_pairs, median, pairs};
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Opts};

/// How many statements of each kind the server was asked so far.
fn asked(server: &MysqlServer) -> BTreeMap<String, u64> {
    let shown = server.sql(
        "SHOW GLOBAL STATUS WHERE Variable_name IN ('Com_update', 'Com_insert', 'Com_select', 'Com_begin', 'Com_stmt_execute', 'Questions')",
    );
    let counted = |line: &str| {
        let (name, count) = line.split_once('\t')?;
        Some((name.to_owned(), count.parse().ok()?))
    };
    shown.lines().filter_map(counted).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_uncontended_pair_is_two_statements() {
    const PAIRS: usize = 1000;
    let server = MysqlServer::start();
    let url = server.place("a");
    let client = connect(&url).await;
    client.lock("x").acquire().await.unwrap().release().await.check().unwrap();
    let before = asked(&server);
    let times = pairs(&client, PAIRS).await;
    let after = asked(&server);
    let spent = after["Questions"] - before["Questions"];
    assert!(server.connections("a") <= 2, "one connection, and one for a renewal");
    drop(client);
    // A renewal comes where the machine stands still for long.
    assert!(spent <= 2 * PAIRS as u64 + 20, "{spent} statements for {PAIRS} pairs");

    let opts = Opts::from_url(&server.url("a")).expect("this is a URL");
    let mut bare = Conn::new(opts).await.unwrap();
    bare.query_drop(
        "CREATE TABLE bare (name varbinary(512) PRIMARY KEY, owner char(32)); INSERT INTO bare VALUES ('x', NULL)",
    )
    .await
    .unwrap();
    let take = "UPDATE bare SET owner = ? WHERE name = ? AND owner IS NULL";
    let free = "UPDATE bare SET owner = NULL WHERE name = ? AND owner = ?";
    let (take, free) = (bare.prep(take).await.unwrap(), bare.prep(free).await.unwrap());
    let mut twos = Vec::with_capacity(PAIRS);
    for _ in 0..PAIRS {
        let began = Instant::now();
        bare.exec_drop(&take, ("me", "x")).await.unwrap();
        assert_eq!(bare.affected_rows(), 1);
        bare.exec_drop(&free, ("x", "me")).await.unwrap();
        assert_eq!(bare.affected_rows(), 1);
        twos.push(began.elapsed());
    }
    let (plain, options) = (server.url("a").parse().unwrap(), Options::default());
    let store = MysqlStore::connect(&plain, &[], &options, runtime()).await.unwrap();
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
async fn waiters_cost_few_statements_and_keep_their_order() {
    // Of more than 24, those whose transaction is refused come later.
    let (waiters, rounds) = if fencelock_tests::in_full() { (24, 100) } else { (16, 8) };
    let server = MysqlServer::start();
    let url = server.place("a");
    drop(connect(&url).await);
    let mut clients = Vec::new();
    for _ in 0..waiters {
        clients.push(connect(&url).await);
    }
    let before = asked(&server);
    let Turns { took, acquired, least, most } = all_take(clients, rounds).await;
    let after = asked(&server);
    let of = |name: &str| (after[name] - before[name]) as f64 / acquired as f64;
    println!(
        "{acquired} acquisitions by {waiters} clients in {took:?}; for each: {:.2} writes, {:.2} transactions, {:.2} statements in all; of {rounds} turns each had {least} to {most}",
        of("Com_update"),
        of("Com_begin"),
        of("Questions"),
    );
    // The count may begin and end within a round.
    assert!(most - least <= 2, "in order: from {least} to {most}");
    // Take and Free, a renewal of what was handed over; and each waiter looks once a second.
    let looks = took.as_secs_f64() * f64::from(waiters) / acquired as f64;
    assert!(of("Com_update") <= 4.0 + looks && of("Com_begin") <= 3.0 + looks);
    // The next one looks every 2.5 ms at the most, the one behind it half as often, and so on.
    let often: f64 = (1..=waiters).map(|place| 400.0 / f64::from(place)).sum();
    let polls = took.as_secs_f64() * often / acquired as f64;
    assert!(of("Com_select") <= 4.0 + looks + polls, "{:.2} reads", of("Com_select"));
}
