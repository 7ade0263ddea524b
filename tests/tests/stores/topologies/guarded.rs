//! Sentinels and clusters that ask who comes: TLS, passwords, users with no more rights than they need.

use std::time::{Duration, Instant};

use fencelock::{Client, Code};
use fencelock_tests::failover::back;
use fencelock_tests::servers::{Authority, ClusterSet, Guard, RedisServer, SentinelSet, rights};

/// The lock; its name is one that the user of `docs/reference/redis.md` may use.
const NAME: &str = "app:till";
const PASSWORD: &str = "PASSWORD";

async fn connect(url: &str) -> fencelock::Result<Client> {
    let client = Client::builder().option("ttl", "2s").option("connect_timeout", "2s");
    client.option("timeout", "1s").connect(url).await
}

/// Two clients take a lock in turn, by a hand-over, before and after a failover; no token falls.
async fn in_turn_across(url: &str, fail_over: impl FnOnce() -> Instant) {
    let (a, b) = (connect(url).await.unwrap(), connect(url).await.unwrap());
    let before = hand_over(&a, &b).await;
    let over = tokio::task::block_in_place(fail_over);
    let next = b.lock(NAME).acquire_within(Duration::from_secs(20)).await.unwrap();
    let time = over.elapsed();
    println!("granted {time:?} after the failover");
    assert!(time <= back(), "granted {time:?} after the failover");
    assert!(next.token() > before, "{} after {before}", next.token());
    next.release().await.check().unwrap();
    hand_over(&b, &a).await;
}

/// One client gives the lock to another one that waits for it; the token of the latter.
async fn hand_over(from: &Client, to: &Client) -> fencelock::Token {
    let held = from.lock(NAME).acquire_within(Duration::from_secs(5)).await.unwrap();
    let waiting = tokio::spawn(to.lock(NAME).acquire());
    while from.lock(NAME).inspect().await.unwrap().waiters.is_empty() {
        tokio::task::yield_now().await;
    }
    held.release().await.check().unwrap();
    let next = waiting.await.unwrap().unwrap();
    let token = next.token();
    next.release().await.check().unwrap();
    token
}

/// Every connection to the server but the test's own and those of other servers is this user's.
fn all_are(server: &RedisServer, user: &str) {
    let listed = server.ask::<String>(&["CLIENT", "LIST"]);
    let ours: Vec<_> = listed.lines().filter(|line| line.contains("lib-name=fencelock")).collect();
    let users: Vec<_> =
        listed.lines().filter(|line| line.contains(&format!(" user={user} "))).collect();
    assert!(!users.is_empty() && ours.iter().all(|line| users.contains(line)), "{listed}");
}

fn with(url: &str, scheme: &str, greeting: &str, query: &str) -> String {
    let (_, rest) = url.split_once("://").unwrap();
    format!("{scheme}://{greeting}{rest}{query}")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sentinels_and_their_servers_want_a_password() {
    let guard = Guard { servers: Some(PASSWORD), sentinels: Some(PASSWORD), ..Guard::default() };
    let mut set = tokio::task::block_in_place(|| SentinelSet::guarded(guard));
    let refused = connect(&set.url()).await.unwrap_err();
    assert_eq!(refused.code(), Code::Auth, "{refused}");
    let wrong = with(&set.url(), "redis+sentinel", ":another@", "");
    let refused = connect(&wrong).await.unwrap_err();
    assert_eq!(refused.code(), Code::Auth, "{refused}");
    assert!(!refused.to_string().contains("another@"), "{refused}");
    let url = with(&set.url(), "redis+sentinel", &format!(":{PASSWORD}@"), "");
    in_turn_across(&url, || set.fail_over().0).await;
}

/// The sentinels know a password and no users; the servers know the user of `docs/reference/redis.md`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sentinels_over_tls_lead_a_user_to_the_master() {
    let authority = Authority::default();
    let arguments: Vec<_> = ["--user"].into_iter().chain(rights()).collect();
    let guard = Guard {
        authority: Some(&authority),
        sentinels: Some(PASSWORD),
        arguments: &arguments,
        ..Guard::default()
    };
    let mut set = tokio::task::block_in_place(|| SentinelSet::guarded(guard));
    let query = format!("?cacert={}", authority.path("ca.pem"));
    let stranger = Authority::default();
    let other = format!("?cacert={}", stranger.path("ca.pem"));
    let greeting = format!("fencelock:{PASSWORD}@");
    let refused =
        connect(&with(&set.url(), "rediss+sentinel", &greeting, &other)).await.unwrap_err();
    assert_eq!(refused.code(), Code::Unavailable, "{refused}");
    assert!(refused.to_string().contains("certificate"), "{refused}");
    let url = with(&set.url(), "rediss+sentinel", &greeting, &query);
    in_turn_across(&url, || {
        all_are(&set.nodes[set.master()], "fencelock");
        set.fail_over().0
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_over_tls_knows_the_user() {
    let authority = Authority::default();
    let user = ["--user"].into_iter().chain(rights()).chain(["+asking", "+cluster|slots"]);
    let arguments: Vec<_> = user.collect();
    let (mut set, ports) =
        tokio::task::block_in_place(|| ClusterSet::start_over_tls(&authority, &arguments));
    let query = format!("?cacert={}", authority.path("ca.pem"));
    let places: Vec<_> = ports.iter().map(|port| format!("localhost:{port}")).collect();
    let refused =
        connect(&format!("rediss+cluster://fencelock:another@{}{query}", places.join(",")))
            .await
            .unwrap_err();
    assert_eq!(refused.code(), Code::Auth, "{refused}");
    let url = format!("rediss+cluster://fencelock:{PASSWORD}@{}{query}", places.join(","));
    in_turn_across(&url, || {
        all_are(&set.nodes[set.owner(NAME)], "fencelock");
        set.fail_over(NAME).1
    })
    .await;
}
