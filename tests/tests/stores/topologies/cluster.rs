//! Redis Cluster: every step to the node of its lock, also while slots move and nodes fail.
//!
//! 3 failovers under load; 30 with `FENCELOCK_FULL=1`.

use std::sync::Arc;
use std::time::Duration;

use fencelock::driver::redis::RedisStore;
use fencelock::options::Options;
use fencelock::port::{
    Action, Applied, Kind, LeaseStore, LockKey, Mode, Outcome, OwnerId, Step, Take,
};
use fencelock::runtime::TokioRuntime;
use fencelock::{Client, Code, Token};
use fencelock_servers::own::free_port;
use fencelock_tests::failover::{Course, back, under_load, usual_rounds};
use fencelock_tests::servers::{ClusterSet, RedisServer, commands};
use url::Url;

/// Locks on all three masters.
const NAMES: [&str; 6] = ["a", "b", "c", "d", "{e}:1", "f}{"];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn failovers_under_load_lower_no_token_and_are_over_at_once() {
    let set = tokio::task::block_in_place(ClusterSet::default);
    let url = set.url();
    let fail_over = |set: &mut ClusterSet, round| set.fail_over(NAMES[round % NAMES.len()]);
    let course = Course { url: &url, names: &NAMES, within: back(), rounds: usual_rounds() };
    under_load(set, &course, fail_over, ClusterSet::rejoin).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_leases_are_renewed_wherever_they_lie() {
    let set = tokio::task::block_in_place(ClusterSet::default);
    let client = Client::builder().option("ttl", "2s").connect(&set.url()).await.unwrap();
    let mut guards = Vec::new();
    for number in 0..200 {
        guards.push(client.lock(&format!("lease:{number}")).acquire().await.unwrap());
    }
    assert_eq!(client.names("lease:").await.unwrap().len(), 200);
    tokio::time::sleep(Duration::from_millis(3500)).await;
    for guard in guards {
        guard.release().await.check().unwrap();
    }
}

/// Locks that lie apart cannot be one step; the error says how they can. Asked for as several, they are taken in turn.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn locks_of_several_slots_are_no_single_step() {
    let set = tokio::task::block_in_place(ClusterSet::default);
    let runtime = Arc::new(TokioRuntime::current().unwrap());
    let url = format!("redis+cluster://127.0.0.1:{}", set.nodes[0].port());
    let url = Url::parse(&url).unwrap();
    let store = RedisStore::connect(&url, &Options::default(), runtime.clone()).await.unwrap();
    let takes = |names: [&str; 2]| {
        names.map(|name| {
            let (mode, ttl, floor) = (Mode::Exclusive, Duration::from_secs(2), Token::default());
            let info = "{}".into();
            let take = Take {
                mode,
                limit: 1,
                permits: 1,
                ttl,
                wait: false,
                block: 1,
                floor,
                info,
                vote: None,
            };
            let (lock, owner) = (LockKey::new(name), OwnerId::draw(&*runtime));
            Step { lock, owner, kind: Kind::Mutex, action: Action::Take(take) }
        })
    };
    for answer in store.step_all(&takes(["apart:1", "apart:2"])).await {
        let failure = answer.unwrap_err();
        assert_eq!((failure.applied, failure.error.code()), (Applied::No, Code::Unsupported));
        assert!(failure.error.message().contains("give their names a {tag}"), "{}", failure.error);
    }
    for node in &set.nodes {
        node.ask::<()>(&["CONFIG", "RESETSTAT"]);
    }
    for answer in store.step_all(&takes(["{shelf}:1", "{shelf}:2"])).await {
        assert!(matches!(answer, Ok(Outcome::Granted { .. })), "{answer:?}");
    }
    let scripts = set.nodes.iter().filter_map(|node| commands(&mut node.admin()).remove("evalsha"));
    assert_eq!(scripts.sum::<u64>(), 1, "one script takes both");
    let client = fencelock::connect(&set.url()).await.unwrap();
    let both = client.all(["apart:1", "apart:2"]).acquire().await.unwrap();
    assert!(client.lock("apart:2").try_acquire().await.unwrap().is_none());
    both.release().await.check().unwrap();
}

#[tokio::test]
async fn a_slot_that_moves_takes_its_locks_along() -> fencelock::Result<()> {
    let set = ClusterSet::default();
    let client = Client::builder().option("ttl", "20s").connect(&set.url()).await.unwrap();
    let (held, free) = (client.lock("{slot}:held"), client.lock("{slot}:free"));
    let guard = held.acquire().await.unwrap();
    let other = fencelock::connect(&set.url()).await.unwrap();
    let waiting = tokio::spawn(async move { other.lock("{slot}:held").acquire().await });
    while held.inspect().await.unwrap().waiters.is_empty() {
        tokio::task::yield_now().await;
    }
    let (end, ended) = tokio::sync::oneshot::channel();
    let body = tokio::spawn({
        let lock = client.lock("{slot}:body").ttl(Duration::from_secs(2));
        async move { lock.with(async |_| ended.await).await }
    });
    while client.lock("{slot}:body").inspect().await.unwrap().holders.is_empty() {
        tokio::task::yield_now().await;
    }
    let step = set.begin_move("{slot}");
    // Held: both its keys are still here. Free: one of its keys is nowhere, and no node takes it until the slot has moved.
    guard.extend(Duration::from_secs(21)).await.unwrap();
    let refused = free.try_acquire().await.unwrap_err();
    assert_eq!((refused.code(), refused.retryable()), (Code::Unavailable, true), "{refused}");
    if !refused.to_string().contains("TRYAGAIN") {
        return Err(refused);
    }
    let soon = tokio::spawn({
        let free = free.clone();
        async move { free.acquire_within(Duration::from_secs(10)).await }
    });
    set.carry(&step);
    // All keys have gone: the step is asked for where they are.
    guard.extend(Duration::from_secs(22)).await?;
    // Whoever works under a lock is renewed where the slot comes to, also for longer than its lease.
    tokio::time::sleep(Duration::from_millis(2500)).await;
    set.end_move(&step);
    soon.await.unwrap().unwrap().release().await.check().unwrap();
    guard.release().await.check().unwrap();
    waiting.await.unwrap().unwrap().release().await.check().unwrap();
    end.send(()).unwrap();
    body.await.unwrap().expect("the body ran to its end under the lock");
    for word in ["ASK", "MOVED"] {
        let met = format!("errorstat_{word}:");
        assert!(set.nodes[step.from].info("errorstats").contains(&met), "nobody met {word}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_that_is_down_is_waited_for() {
    let set = tokio::task::block_in_place(ClusterSet::default);
    let client = Client::builder().option("ttl", "3s").connect(&set.url()).await.unwrap();
    let guard = client.lock("held").acquire().await.unwrap();
    let (end, ended) = tokio::sync::oneshot::channel();
    let body = tokio::spawn({
        let lock = client.lock("{orders}:body");
        async move { lock.with(async |_| ended.await).await }
    });
    while client.lock("{orders}:body").inspect().await.unwrap().holders.is_empty() {
        tokio::task::yield_now().await;
    }
    let slot = set.nodes[0].ask::<u16>(&["CLUSTER", "KEYSLOT", "orders"]).to_string();
    for node in &set.nodes {
        node.ask::<()>(&["CLUSTER", "DELSLOTS", &slot]);
    }
    let owner = set.owner("held");
    let refused = client.lock("orders").try_acquire().await.unwrap_err();
    assert_eq!((refused.code(), refused.retryable()), (Code::Unavailable, true), "{refused}");
    // A try is made twice; the second one may know already that no node has the slot.
    let told = refused.to_string();
    assert!(told.contains("CLUSTERDOWN") || told.contains("no node has"), "{refused}");
    let waiting = tokio::spawn({
        let lock = client.lock("orders");
        async move { lock.acquire_within(Duration::from_secs(10)).await }
    });
    tokio::time::sleep(Duration::from_millis(1500)).await;
    assert!(!waiting.is_finished());
    set.nodes[owner].ask::<()>(&["CLUSTER", "ADDSLOTS", &slot]);
    waiting.await.unwrap().unwrap().release().await.check().unwrap();
    guard.release().await.check().unwrap();
    end.send(()).unwrap();
    body.await.unwrap().expect("the body ran to its end under the lock");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_is_not_taken_for_the_other() {
    let set = tokio::task::block_in_place(ClusterSet::default);
    let refusal = async |url: &str| fencelock::connect(url).await.map(|_| ()).unwrap_err();
    let node = refusal(set.nodes[0].url().as_str()).await;
    assert_eq!(node.code(), Code::Unsupported, "{node}");
    assert!(node.message().contains("redis+cluster"), "{node}");
    let server = RedisServer::start();
    let single = refusal(&server.url().as_str().replace("redis", "redis+cluster")).await;
    assert_eq!(single.code(), Code::Unsupported, "{single}");
    let free = format!("127.0.0.1:{}", free_port());
    let absent = refusal(&format!("redis+cluster://{free}")).await;
    assert_eq!((absent.code(), absent.retryable()), (Code::Unavailable, true), "{absent}");
    // One known node among strangers is enough, also a replica.
    let port = set.nodes[5].port();
    fencelock::connect(&format!("redis+cluster://{free},127.0.0.1:{port}")).await.unwrap();
}

/// A request under way at a server that hangs waits no longer than until another server is there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_frozen_master_is_left_for_the_next_one() {
    let set = tokio::task::block_in_place(ClusterSet::default);
    let client = Client::builder().option("ttl", "20s").option("timeout", "30s");
    let client = client.connect(&set.url()).await.unwrap();
    let guard = client.lock("held").acquire().await.unwrap();
    let token = guard.token();
    guard.release().await.check().unwrap();
    let old = set.owner("held");
    set.nodes[old].stop();
    let hanging = tokio::spawn({
        let lock = client.lock("{held}:other");
        async move { lock.acquire().await }
    });
    let over = tokio::task::block_in_place(|| set.taken_over("held", old));
    let next = client.lock("held").acquire_within(Duration::from_secs(20)).await.unwrap();
    assert!(over.elapsed() <= back(), "granted {:?} after the failover", over.elapsed());
    assert!(next.token() > token);
    next.release().await.check().unwrap();
    hanging.await.unwrap().unwrap().release().await.check().unwrap();
    set.nodes[old].cont();
}
