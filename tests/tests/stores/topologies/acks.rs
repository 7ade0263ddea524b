//! `acks=1`: what no replica has is no grant.

use std::time::{Duration, Instant};

use fencelock::{Client, Code, Released};
use fencelock_tests::servers::{ClusterSet, RedisServer, SentinelSet, held};

/// Longer than a server waits for its replicas.
const FROZEN: Duration = Duration::from_millis(1500);

/// A master and its only replica.
struct Pair {
    master: RedisServer,
    replica: RedisServer,
}

impl Pair {
    fn start() -> Self {
        let master = RedisServer::start_with(&["--repl-diskless-sync-delay", "0"]);
        let port = master.port().to_string();
        let replica = RedisServer::start_with(&["--replicaof", "127.0.0.1", &port]);
        while !master.info("replication").contains("state=online") {
            std::thread::sleep(Duration::from_millis(5));
        }
        Self { master, replica }
    }

    async fn client(&self, acks: u32, ttl: &str) -> Client {
        connect(self.master.url().as_str(), acks, ttl).await
    }
}

async fn connect(url: &str, acks: u32, ttl: &str) -> Client {
    let builder = Client::builder().option("acks", acks).option("ttl", ttl).option("local", 0);
    builder.connect(url).await.unwrap()
}

async fn queued(client: &Client, lock: &str) {
    while client.lock(lock).inspect().await.unwrap().waiters.is_empty() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn a_grant_without_a_replica_is_none_and_leaves_nothing() {
    let pair = Pair::start();
    let client = pair.client(1, "20s").await;
    client.lock("orders").acquire().await.unwrap().release().await.check().unwrap();
    pair.replica.stop();
    let tried = client.lock("orders").try_acquire().await;
    let refused = tried.expect_err("granted by the master alone");
    assert_eq!((refused.code(), refused.retryable()), (Code::Unavailable, true), "{refused}");
    assert_eq!(refused.fields()["acks"], "0 of 1", "{refused}");
    let short = client.lock("orders").acquire_within(FROZEN).await.unwrap_err();
    assert_eq!(short.code(), Code::Unavailable, "{short}");
    let waiting = tokio::spawn({
        let lock = client.lock("orders");
        async move { lock.acquire_within(Duration::from_secs(20)).await }
    });
    tokio::time::sleep(FROZEN).await;
    assert!(!waiting.is_finished(), "granted by the master alone, to a waiter");
    pair.replica.cont();
    waiting.await.unwrap().unwrap().release().await.check().unwrap();
    // What was refused is not held, and waits for nothing.
    let state = client.lock("orders").inspect().await.unwrap();
    assert!(state.holders.is_empty() && state.waiters.is_empty(), "{state:?}");
    // Without `acks` the same server grants what it alone knows.
    pair.replica.stop();
    let alone = pair.client(0, "20s").await;
    alone.lock("alone").try_acquire().await.unwrap().unwrap().release().await.check().unwrap();
    pair.replica.cont();
}

#[tokio::test]
async fn a_push_without_a_replica_is_none() {
    let pair = Pair::start();
    let (first, second) = (pair.client(1, "20s").await, pair.client(1, "20s").await);
    let guard = first.lock("orders").acquire().await.unwrap();
    let waiting = tokio::spawn(async move { second.lock("orders").acquire().await });
    queued(&first, "orders").await;
    pair.replica.stop();
    guard.release().await.check().unwrap();
    tokio::time::sleep(FROZEN).await;
    let state = first.lock("orders").inspect().await.unwrap();
    assert_eq!(state.holders.len(), 1, "the master has handed it over: {state:?}");
    assert!(!waiting.is_finished(), "a push was believed that no replica has");
    pair.replica.cont();
    waiting.await.unwrap().unwrap().release().await.check().unwrap();
}

#[tokio::test]
async fn a_renewal_without_a_replica_is_none() {
    let pair = Pair::start();
    // Long enough for a machine on which a dozen servers are starting beside it.
    let client = pair.client(1, "3s").await;
    let guard = client.lock("orders").acquire().await.unwrap();
    tokio::time::sleep(Duration::from_millis(3600)).await;
    assert!(guard.is_held(), "renewed as long as a replica has it");
    pair.replica.stop();
    let lost = tokio::time::timeout(Duration::from_millis(3300), guard.lost()).await;
    pair.replica.cont();
    assert!(lost.is_ok(), "held longer than a replica knows of");
}

/// The writing of a grant is somebody else's: also where it is younger than a millisecond, and needs no renewal, the
/// replicas have to have it.
#[tokio::test]
async fn hand_overs_are_acknowledged_however_young() {
    let pair = Pair::start();
    let (first, second) = (pair.client(1, "5s").await, pair.client(1, "5s").await);
    for _ in 0..20 {
        let guard = first.lock("orders").acquire().await.unwrap();
        let waiting = tokio::spawn({
            let lock = second.lock("orders");
            async move { lock.acquire().await }
        });
        queued(&first, "orders").await;
        guard.release().await.check().unwrap();
        let guard = waiting.await.unwrap().unwrap();
        let copy: Option<String> =
            redis::cmd("GET").arg(held("orders")).query(&mut pair.replica.admin()).unwrap();
        assert!(copy.is_some(), "the replica does not have what was granted");
        guard.release().await.check().unwrap();
    }
}

/// B25: after a failover with a frozen replica either a lock was given that nobody else had, or one could never be had
/// again. B01: a renewal that fails while it lasts is made later.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b25_b01_a_hold_that_was_acknowledged_lives_through_a_failover() {
    let mut set = tokio::task::block_in_place(SentinelSet::with_one_leader);
    // The lease is longer than a failover takes on a busy machine, where the replicas have to find the new master too. The master is killed
    // just before a renewal is due.
    let (holder, other) =
        (connect(&set.url(), 1, "30s").await, connect(&set.url(), 1, "30s").await);
    let guard = holder.lock("held").acquire().await.unwrap();
    let token = guard.token();
    let old = set.master();
    tokio::time::sleep(guard.remaining().saturating_sub(Duration::from_millis(20_300))).await;
    tokio::task::block_in_place(|| set.fail_over());
    let seen = other.lock("held").acquire_within(Duration::from_millis(500)).await;
    assert!(seen.is_err(), "{seen:?}");
    // Only an acknowledged renewal prolongs what the guard believes.
    while guard.remaining() <= Duration::from_secs(25) {
        assert!(guard.is_held(), "not renewed at the new master");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    guard.release().await.check().unwrap();
    let next = other.lock("held").acquire_within(Duration::from_secs(5)).await.unwrap();
    assert!(next.token() > token);
    next.release().await.check().unwrap();
    tokio::task::block_in_place(|| set.rejoin(old));
    can_lock([&holder, &other], &set, true).await;
}

/// For a minute, in full, everybody can lock. Without acks another failover may forget a hold.
async fn can_lock(clients: [&Client; 2], set: &SentinelSet, acknowledged: bool) {
    let full = fencelock_tests::in_full();
    let lasts = Duration::from_secs(if full { 60 } else { 6 });
    let began = Instant::now();
    while began.elapsed() < lasts {
        for client in clients {
            let master = set.master();
            let guard = client.lock("held").acquire_within(Duration::from_secs(5)).await.unwrap();
            let released = guard.release().await;
            let forgotten = released == Released::AlreadyLost && set.master() != master;
            assert!(released == Released::Released || (forgotten && !acknowledged), "{released:?}");
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// B25, the other half, and the guarantee's own words: without `acks` the hold is gone, the fence covers it, and the holder
/// is told at its next renewal.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b25_without_acks_the_fence_covers_what_a_failover_forgets() {
    let mut set = tokio::task::block_in_place(SentinelSet::with_one_leader);
    let (holder, other) = (connect(&set.url(), 0, "6s").await, connect(&set.url(), 0, "6s").await);
    holder.lock("warm").acquire().await.unwrap().release().await.check().unwrap();
    let old = set.master();
    let replicas: Vec<_> = (0..3).filter(|at| *at != old).collect();
    for at in &replicas {
        set.nodes[*at].stop();
    }
    // Also what is on its way to them would be passed on.
    set.nodes[old].ask::<()>(&["CLIENT", "KILL", "TYPE", "replica"]);
    let guard = holder.lock("held").acquire().await.unwrap();
    set.nodes[old].kill_hard();
    for at in &replicas {
        set.nodes[*at].cont();
    }
    let next = other.lock("held").acquire_within(Duration::from_secs(20)).await.unwrap();
    assert!(next.token() > guard.token(), "the fence refuses the first one's writes");
    tokio::time::timeout(Duration::from_secs(6), guard.lost()).await.expect("told");
    next.release().await.check().unwrap();
    can_lock([&holder, &other], &set, false).await;
}

/// B26: scripts that the new master has never seen, or has forgotten.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b26_scripts_are_known_again_after_a_failover() {
    let mut set = tokio::task::block_in_place(SentinelSet::with_one_leader);
    let client = connect(&set.url(), 1, "10s").await;
    let guard = client.lock("held").acquire().await.unwrap();
    let (_, new) = tokio::task::block_in_place(|| set.fail_over());
    let soon = client.lock("orders").acquire_within(Duration::from_secs(10)).await.unwrap();
    soon.release().await.check().unwrap();
    set.nodes[new].ask::<()>(&["SCRIPT", "FLUSH"]);
    guard.extend(Duration::from_secs(12)).await.unwrap();
    guard.release().await.check().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_acknowledges_too() {
    let set = tokio::task::block_in_place(ClusterSet::default);
    let client = connect(&set.url(), 1, "20s").await;
    client.lock("orders").acquire().await.unwrap().release().await.check().unwrap();
    let owner = set.owner("orders");
    let replica = owner + 3;
    set.nodes[replica].stop();
    let refused = client.lock("orders").try_acquire().await.unwrap_err();
    set.nodes[replica].cont();
    assert_eq!(refused.code(), Code::Unavailable, "{refused}");
    let guard = client.lock("orders").acquire_within(Duration::from_secs(20)).await.unwrap();
    guard.release().await.check().unwrap();
}
