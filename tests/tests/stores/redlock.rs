//! The quorum of five real Redis servers: servers that die and come back one after the other, stand still, are flushed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use fencelock::{Client, Code, Released};
use fencelock_tests::servers::{RedisServer, commands};

const MS: Duration = Duration::from_millis(1);
/// Since when a server keeps its data.
const MARK: &str = "fencelock:born";
/// The longest lease, and so how long a node that was restarted does not vote.
const LONGEST: Duration = Duration::from_secs(1);

/// Rounds of faults: all of them by hand, a tenth in every run.
fn rounds(full: usize) -> usize {
    if fencelock_tests::in_full() { full } else { full / 10 }
}

fn servers(count: usize) -> Vec<RedisServer> {
    (0..count).map(|_| RedisServer::start()).collect()
}

fn url(servers: &[RedisServer]) -> String {
    url_with(servers, LONGEST)
}

fn url_with(servers: &[RedisServer], longest: Duration) -> String {
    let places: Vec<_> = servers.iter().map(|one| format!("127.0.0.1:{}", one.port())).collect();
    let longest = longest.as_millis();
    format!("redlock://{}?ttl={longest}ms&max_ttl={longest}ms&timeout=2s", places.join(","))
}

async fn client(servers: &[RedisServer]) -> Client {
    connect(&url(servers)).await
}

async fn connect(url: &str) -> Client {
    let client = fencelock::connect(url).await.expect("the nodes are there");
    // New servers do not vote before the longest lease is over.
    let first = client.lock("first").acquire_within(10_000 * MS).await.expect("they vote in time");
    first.release().await.check().expect("nothing fails yet");
    client
}

/// The object that a lock protects: a place only one may be in, and the newest token seen there.
#[derive(Default)]
struct Place {
    inside: AtomicBool,
    token: AtomicU64,
    overlaps: AtomicU64,
    fallen: AtomicU64,
    visits: AtomicU64,
}

impl Place {
    async fn visit(&self, client: &Client) {
        let guard = match client.lock("place").acquire_within(5_000 * MS).await {
            Ok(guard) => guard,
            Err(error) => {
                assert!(matches!(error.code(), Code::Timeout | Code::Unavailable), "{error}");
                return;
            }
        };
        if self.inside.swap(true, Ordering::SeqCst) && guard.is_held() {
            self.overlaps.fetch_add(1, Ordering::Relaxed);
        }
        let token = guard.token().get();
        self.fallen.fetch_add(
            u64::from(self.token.swap(token, Ordering::SeqCst) >= token),
            Ordering::Relaxed,
        );
        tokio::time::sleep(MS).await;
        self.inside.store(false, Ordering::SeqCst);
        self.visits.fetch_add(1, Ordering::Relaxed);
        // With a node gone this may be settled later; the lock itself is given back.
        let _ = guard.release().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn masters_killed_and_restarted_in_turn_let_nobody_overlap() {
    let mut servers = servers(5);
    let place = Arc::new(Place::default());
    let done = Arc::new(AtomicBool::new(false));
    let mut workers = Vec::new();
    for _ in 0..3 {
        let (client, place, done) = (client(&servers).await, place.clone(), done.clone());
        workers.push(tokio::spawn(async move {
            while !done.load(Ordering::Relaxed) {
                place.visit(&client).await;
            }
            client.close().await;
        }));
    }
    for round in 0..rounds(100) {
        let before = place.visits.load(Ordering::Relaxed);
        let node = round % servers.len();
        servers[node].kill_hard();
        tokio::time::sleep(100 * MS).await;
        servers[node].restart();
        // It votes again after the longest lease, counted from when a client met it.
        tokio::time::sleep(LONGEST + 600 * MS).await;
        let visits = place.visits.load(Ordering::Relaxed) - before;
        assert!(visits > 20, "{visits} visits while node {node} was away");
    }
    done.store(true, Ordering::Relaxed);
    for worker in workers {
        worker.await.expect("no worker panics");
    }
    let counts = [&place.overlaps, &place.fallen].map(|count| count.load(Ordering::Relaxed));
    assert_eq!(counts, [0, 0], "overlaps, tokens that fell");
}

async fn median(client: &Client, turns: usize) -> Duration {
    let mut took = Vec::with_capacity(turns);
    for turn in 0..turns {
        let start = Instant::now();
        let guard = client.lock(&format!("pair-{}", turn % 8)).acquire().await.expect("granted");
        took.push(start.elapsed());
        assert_eq!(guard.release().await, Released::Released);
    }
    took.sort_unstable();
    took[turns / 2]
}

/// Each node is asked twice for a pair: no token is written back, though the nodes' clocks differ.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_costs_one_round_trip_as_a_rule() {
    const PAIRS: u64 = 50;
    let servers = servers(5);
    let client = client(&servers).await;
    median(&client, 20).await;
    let mut courses = Vec::new();
    for _ in 0..5 {
        for server in &servers {
            server.ask::<()>(&["CONFIG", "RESETSTAT"]);
        }
        median(&client, PAIRS as usize).await;
        let scripts = |server: &RedisServer| commands(&mut server.admin()).remove("evalsha");
        courses.push(servers.iter().filter_map(scripts).sum::<u64>());
    }
    courses.sort_unstable();
    // A release does not wait for all nodes. A clock may run ahead now and then; and where the machine stalls, a lease is renewed and a node not waited for.
    let pairs = 5 * PAIRS;
    assert!((2 * pairs - 5..=2 * pairs + pairs / 5).contains(&courses[2]), "{courses:?} scripts");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_master_that_stands_still_is_not_waited_for() {
    let servers = servers(5);
    let client = client(&servers).await;
    let all = median(&client, 300).await;
    servers[2].stop();
    let fewer = median(&client, 300).await;
    servers[2].cont();
    // Whoever waits for it waits 250 ms, the shortest patience, or longer. Only the first may do so.
    assert!(fewer < all + 100 * MS, "{fewer:?} instead of {all:?}");
    // What it missed is repeated to it.
    let other = fencelock::connect(servers[2].url().as_str()).await.expect("it goes on");
    let deadline = Instant::now() + 5_000 * MS;
    for turn in 0..8 {
        let lock = other.lock(&format!("pair-{turn}"));
        while !lock.inspect().await.expect("it answers").holders.is_empty() {
            assert!(Instant::now() < deadline, "pair-{turn} is still held there");
            tokio::time::sleep(10 * MS).await;
        }
    }
}

/// Under load a master stands still for several times as long as anybody waits for it: it is asked little meanwhile, has
/// little cleanup pending, and votes again soon after it goes on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_master_that_stands_still_for_long_is_spared_and_comes_back() {
    let servers = servers(5);
    let client = client(&servers).await;
    let done = Arc::new(AtomicBool::new(false));
    let pairs = Arc::new(AtomicU64::new(0));
    let load = (0..4).map(|task| {
        let (client, done, pairs) = (client.clone(), done.clone(), pairs.clone());
        tokio::spawn(async move {
            while !done.load(Ordering::Relaxed) {
                let guard = client.lock(&format!("pair-{task}")).acquire().await.expect("granted");
                assert_eq!(guard.release().await, Released::Released);
                pairs.fetch_add(1, Ordering::Relaxed);
            }
        })
    });
    let load: Vec<_> = load.collect();
    let course = async |time: Duration| {
        let before = pairs.load(Ordering::Relaxed);
        tokio::time::sleep(time).await;
        pairs.load(Ordering::Relaxed) - before
    };
    let all = course(1_000 * MS).await;
    servers[2].ask::<()>(&["CONFIG", "RESETSTAT"]);
    servers[2].stop();
    let fewer = course(6_000 * MS).await;
    done.store(true, Ordering::Relaxed);
    for task in load {
        task.await.expect("no lock is lost");
    }
    servers[2].cont();
    // Had each waited for it, there had been some twenty.
    assert!(fewer > all, "{fewer} pairs in 6 s, {all} in one before");
    // A majority that needs it, as soon as it has been told what it missed.
    servers[0].stop();
    servers[1].stop();
    let back = client.lock("back").acquire_within(5_000 * MS).await;
    servers[0].cont();
    servers[1].cont();
    back.expect("it votes again").release().await.check().expect("a majority is there");
    let scripts = commands(&mut servers[2].admin()).remove("evalsha").unwrap_or_default();
    println!(
        "{all} pairs in 1 s, then {fewer} in 6 s; {scripts} scripts on the one that stood still"
    );
    // Each pair would have sent it two, and a cleanup. Those before it is known to stand still do so: for a second and a quarter at most.
    assert!(scripts < fewer, "{scripts} scripts for {fewer} pairs of others");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_was_flushed_does_not_vote() {
    let servers = servers(3);
    let (a, b) = (client(&servers).await, client(&servers).await);
    let held = a.lock("x").renew(false).ttl(LONGEST).acquire().await.unwrap();
    // Two of three nodes forget the hold: together they would grant it again.
    for server in &servers[..2] {
        let _: () = redis::cmd("FLUSHALL").query(&mut server.admin()).expect("it can be flushed");
    }
    let error = b.lock("x").try_acquire().await.unwrap_err();
    assert_eq!(error.code(), Code::Unavailable);
    assert!(error.message().contains("vote again in"), "{error}");
    let next = b.lock("x").acquire_within(5_000 * MS).await.unwrap();
    assert!(!held.is_held() && next.token() > held.token());
    next.release().await.check().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_client_does_not_believe_a_node_that_was_flushed() {
    let servers = servers(3);
    let a = client(&servers).await;
    // However long they are up.
    tokio::time::sleep(LONGEST + 1_100 * MS).await;
    let held = a.lock("x").renew(false).ttl(LONGEST).acquire().await.unwrap();
    for server in &servers[..2] {
        let _: () = redis::cmd("FLUSHALL").query(&mut server.admin()).expect("it can be flushed");
    }
    let b = fencelock::connect(&url(&servers)).await.unwrap();
    let error = b.lock("x").try_acquire().await.unwrap_err();
    assert!(error.message().contains("vote again in"), "{error}");
    let next = b.lock("x").acquire_within(5_000 * MS).await.unwrap();
    assert!(!held.is_held() && next.token() > held.token());
    next.release().await.check().unwrap();
}

/// The mark of a server: its run, and since when.
fn mark(server: &RedisServer) -> String {
    redis::cmd("GET").arg(MARK).query(&mut server.admin()).expect("there is a mark")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_that_come_back_are_met_before_their_votes_are_wanted() {
    let mut servers = servers(3);
    let client = client(&servers).await;
    for server in &mut servers {
        server.restart();
    }
    let deadline = Instant::now() + 10_000 * MS;
    for server in &servers {
        while redis::cmd("EXISTS").arg(MARK).query::<u32>(&mut server.admin()) != Ok(1) {
            assert!(Instant::now() < deadline, "nobody has met {}", server.url());
            tokio::time::sleep(10 * MS).await;
        }
    }
    tokio::time::sleep(LONGEST).await;
    let guard = client.lock("x").try_acquire().await.unwrap().expect("they vote");
    guard.release().await.check().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replica_that_took_over_does_not_vote_as_its_master() {
    let mut servers = servers(4);
    let replica = servers.pop().expect("there are four");
    drop(client(&servers).await);
    let follow = ["127.0.0.1".to_owned(), servers[0].port().to_string()];
    let _: () = redis::cmd("REPLICAOF").arg(&follow).query(&mut replica.admin()).unwrap();
    let deadline = Instant::now() + 10_000 * MS;
    while redis::cmd("EXISTS").arg(MARK).query::<u32>(&mut replica.admin()) != Ok(1) {
        assert!(Instant::now() < deadline, "the replica follows");
        tokio::time::sleep(10 * MS).await;
    }
    let masters = mark(&servers[0]);
    assert_eq!(mark(&replica), masters);
    let _: () = redis::cmd("REPLICAOF").arg(&["NO", "ONE"]).query(&mut replica.admin()).unwrap();
    tokio::time::sleep(LONGEST + 1_100 * MS).await;
    // However long it is up, it may not have heard of the last locks.
    let place = [replica, RedisServer::start(), RedisServer::start()];
    let b = fencelock::connect(&url(&place)).await.unwrap();
    assert_ne!(mark(&place[0]).split(' ').next(), masters.split(' ').next());
    let error = b.lock("x").try_acquire().await.unwrap_err();
    assert!(error.message().contains("vote again in"), "{error}");
    b.lock("x").acquire_within(5_000 * MS).await.unwrap().release().await.check().unwrap();
}

/// A waiter asks every 125 to 250 ms, when it has waited for long: a hand-over takes half of that, as a rule.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_waits_in_another_client_finds_the_lock_free() {
    let servers = servers(3);
    let url = url_with(&servers, 4 * LONGEST);
    let (a, b) = (connect(&url).await, connect(&url).await);
    let mut took = Vec::new();
    for _ in 0..11 {
        let guard = a.lock("x").acquire().await.unwrap();
        let waiter = tokio::spawn(b.lock("x").acquire());
        tokio::time::sleep(500 * MS).await;
        let start = Instant::now();
        guard.release().await.check().unwrap();
        let next = waiter.await.unwrap().unwrap();
        took.push(start.elapsed());
        next.release().await.check().unwrap();
    }
    took.sort_unstable();
    println!("hand-overs after half a second: {took:?}");
    assert!(took[5] < 250 * MS, "{took:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_minority_may_be_missing_from_the_start() {
    let mut servers = servers(3);
    drop(client(&servers).await);
    servers[0].kill_hard();
    let client = fencelock::connect(&url(&servers)).await.expect("two of three are there");
    client.lock("x").acquire_within(5_000 * MS).await.unwrap().release().await.check().unwrap();
    servers[0].restart();
    tokio::time::sleep(LONGEST + 2_500 * MS).await;
    // With another one gone the first is needed.
    servers[1].kill_hard();
    client.lock("x").acquire_within(5_000 * MS).await.unwrap().release().await.check().unwrap();
    servers[2].kill_hard();
    let error = client.lock("x").try_acquire().await.unwrap_err();
    assert_eq!(error.code(), Code::Unavailable);
    let error = fencelock::connect(&url(&servers)).await.unwrap_err();
    assert_eq!(error.code(), Code::Unavailable);
}

#[tokio::test]
async fn what_is_no_quorum_is_refused_and_named() {
    let refused = |url: &'static str| async move { fencelock::connect(url).await.unwrap_err() };
    let error = refused("redlock://127.0.0.1:1,127.0.0.1:2").await;
    assert_eq!((error.code(), error.fields()["count"].as_str()), (Code::Invalid, "2"));
    let error = refused("redlock://:hunter2@127.0.0.1:1,127.0.0.1:2,127.0.0.1:1").await;
    assert_eq!((error.code(), error.fields()["node"].as_str()), (Code::Invalid, "127.0.0.1:1"));
    assert!(!format!("{error} {error:?}").contains("hunter2"));
    let servers = servers(3);
    let [one, two] = [servers[0].port(), servers[1].port()];
    let twice = format!("redlock://127.0.0.1:{one},localhost:{one},127.0.0.1:{two}");
    let error = fencelock::connect(&twice).await.unwrap_err();
    assert_eq!(error.code(), Code::Invalid);
    assert!(error.message().contains("are one server"), "{error}");
    for dialect in ["redisson", "plain:lock:"] {
        let spoken = fencelock::connect(&format!("{}&dialect={dialect}", url(&servers))).await;
        let error = spoken.unwrap().lock("x").try_acquire().await.unwrap_err();
        assert_eq!(error.code(), Code::Unsupported, "{error}");
    }
    let fair = fencelock::connect(&format!("{}&fair=true", url(&servers))).await.unwrap();
    let error = fair.lock("x").try_acquire().await.unwrap_err();
    assert_eq!(error.code(), Code::Unsupported);
    let error = fair.semaphore("x", 2).fair(false).try_acquire().await.unwrap_err();
    assert!(error.code() == Code::Unsupported && error.message().contains("permits"), "{error}");
}
