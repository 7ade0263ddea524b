//! Locks laid out as Redisson's on a cluster: all keys of one in one slot, also while that moves.

use std::time::Duration;

use fencelock::{Client, Code, Error, Guard, Lock};
use fencelock_tests::bare::PATIENCE;
use fencelock_tests::redisson::THEIRS;
use fencelock_tests::servers::ClusterSet;

/// On all three masters, with and without a tag.
const NAMES: [&str; 4] = ["a", "b", "c", "{d}:1"];

async fn client(set: &ClusterSet) -> Client {
    let builder = Client::builder().option("ttl", "20s").option("dialect", "redisson");
    builder.connect(&set.url()).await.expect("the cluster is up")
}

fn kinds(client: &Client, name: &str) -> [Lock; 2] {
    [client.lock(name), client.write_lock(name)]
}

async fn in_time<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, work).await.expect("it ends")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_kind_is_handed_over_on_every_node() {
    let set = tokio::task::block_in_place(ClusterSet::default);
    let (a, b) = (client(&set).await, client(&set).await);
    for name in NAMES {
        for (kind, (ours, others)) in kinds(&a, name).iter().zip(kinds(&b, name)).enumerate() {
            let guard = ours.acquire().await.unwrap();
            assert!(others.try_acquire().await.unwrap().is_none(), "{name}, kind {kind}");
            let waiting = tokio::spawn(others.acquire());
            while ours.inspect().await.unwrap().waiters.is_empty() {
                tokio::task::yield_now().await;
            }
            guard.release().await.check().unwrap();
            in_time(waiting).await.unwrap().unwrap().release().await.check().unwrap();
        }
    }
}

/// Holds go along with the slot; new requests wait until the slot has moved.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slot_that_moves_takes_its_holders_along() {
    let set = tokio::task::block_in_place(ClusterSet::default);
    let client = client(&set).await;
    let locks = [
        client.lock("{slot}:mutex"),
        client.write_lock("{slot}:write"),
        client.read_lock("{slot}:read"),
    ];
    let mut guards = Vec::new();
    for lock in &locks {
        guards.push(lock.acquire().await.unwrap());
    }
    let longer = async |guards: &[Guard], seconds| {
        for (kind, guard) in guards.iter().enumerate() {
            let extended = guard.extend(Duration::from_secs(seconds)).await;
            extended.unwrap_or_else(|error| panic!("kind {kind}: {error}"));
        }
    };
    let free = [
        client.lock("{slot}:1"),
        client.write_lock("{slot}:2"),
        client.read_lock("{slot}:3"),
        // There is room for one more, but its key is nowhere.
        client.read_lock("{slot}:read"),
    ];
    let step = set.begin_move("{slot}");
    longer(&guards, 21).await;
    for lock in &free {
        let refused = lock.try_acquire().await.map(|_| ()).unwrap_err();
        assert_moving(&refused);
    }
    // A reader of theirs that has ended, or whose key has moved already: nobody can tell, and it stays.
    set.nodes[step.from].ask::<()>(&["HSET", "{slot}:read", THEIRS, "1"]);
    longer(&guards, 22).await;
    let noted: u32 = set.nodes[step.from].ask(&["HEXISTS", "{slot}:read", THEIRS]);
    assert_eq!(noted, 1);
    set.carry(&step);
    longer(&guards, 23).await;
    let soon: Vec<_> = free.map(|lock| tokio::spawn(lock.acquire_within(PATIENCE))).into();
    set.end_move(&step);
    for one in soon {
        in_time(one).await.unwrap().unwrap().release().await.check().unwrap();
    }
    longer(&guards, 24).await;
    let noted: u32 = set.nodes[step.to].ask(&["HEXISTS", "{slot}:read", THEIRS]);
    assert_eq!(noted, 0, "now it is known to have ended");
    for guard in guards {
        assert!(guard.is_held());
        guard.release().await.check().unwrap();
    }
}

fn assert_moving(refused: &Error) {
    assert_eq!((refused.code(), refused.retryable()), (Code::Unavailable, true), "{refused}");
}

/// Redisson puts its keys in braces: one that stands alone in a name sends them elsewhere.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn names_whose_keys_would_lie_apart_are_refused() {
    let set = tokio::task::block_in_place(ClusterSet::default);
    let client = client(&set).await;
    for name in ["a}b", "a{b"] {
        for lock in kinds(&client, name) {
            let refused = lock.try_acquire().await.map(|_| ()).unwrap_err();
            assert_eq!(refused.code(), Code::Unsupported, "{name}: {refused}");
        }
        for node in set.masters() {
            assert_eq!(node.ask::<Vec<String>>(&["KEYS", "*"]), Vec::<String>::new());
        }
    }
}
