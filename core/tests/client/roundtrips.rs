//! How often the store is asked for what was promised to cost one round trip, or none. In virtual time, so that no ticket
//! happens to be refreshed meanwhile.

use std::time::Duration;

use fencelock::{Client, Lock, Released};
use fencelock_sim::{Count, Meter};

use crate::world::{MS, Won, World};

async fn metered(world: &World) -> (Client, Count) {
    let (node, count) = (world.node.clone(), Count::default());
    let store = Meter::new(world.memory.store(node.clone()), count.clone());
    let client = Client::builder().runtime(node).store(store).await;
    (client.expect("memory connects"), count)
}

/// A waiter that has asked for what it has to ask for.
async fn waiting(lock: Lock, world: &World) -> Won {
    let won = world.start(lock.acquire());
    world.sleep(MS).await;
    won
}

async fn a_pair_costs_two_round_trips(world: &World) {
    let (client, count) = metered(world).await;
    let guard = client.lock("x").acquire().await.unwrap();
    assert_eq!(guard.release().await, Released::Released);
    assert_eq!((count.batches(), count.steps()), (2, 2));
}

/// A release takes one request, and the next waiter gets a notice.
async fn a_hand_over_costs_one_round_trip(world: &World) {
    let ((a, of_a), (b, of_b)) = (metered(world).await, metered(world).await);
    let guard = a.lock("x").acquire().await.unwrap();
    let won = waiting(b.lock("x"), world).await;
    let before = (of_a.batches(), of_b.batches());
    assert_eq!(guard.release().await, Released::Released);
    let next = won.await.unwrap();
    assert_eq!((of_a.batches() - before.0, of_b.batches() - before.1), (1, 0));
    assert_eq!(next.release().await, Released::Released);
}

/// A pass inside a client needs no request; without passes, the lock is freed and taken again in one request.
async fn a_pass_inside_costs_none(world: &World) {
    for (local, requests) in [(16, 0), (0, 1)] {
        let (client, count) = metered(world).await;
        let lock = client.lock("x").local(local);
        let guard = lock.acquire().await.unwrap();
        let won = waiting(lock, world).await;
        let before = count.batches();
        assert_eq!(guard.release().await, Released::Released);
        let next = won.await.unwrap();
        assert_eq!(count.batches() - before, requests, "local {local}");
        assert_eq!(next.release().await, Released::Released);
    }
}

/// The client does not ask the store for what it knows by itself.
async fn a_try_beside_a_guard_of_the_same_client_costs_none(world: &World) {
    let (client, count) = metered(world).await;
    let guard = client.lock("x").acquire().await.unwrap();
    let before = count.batches();
    assert!(client.lock("x").try_acquire().await.unwrap().is_none());
    assert_eq!(count.batches(), before);
    assert_eq!(guard.release().await, Released::Released);
}

/// Acquire and release of every kind cost one each; who enters its own lock again pays nothing, and several are asked for
/// as one.
async fn every_kind_costs_two(world: &World) {
    let (client, count) = metered(world).await;
    let kinds = [
        client.lock("mutex"),
        client.read_lock("shared"),
        client.write_lock("shared"),
        client.semaphore("permits", 3),
        client.scope().lock("scoped"),
    ];
    for lock in kinds {
        let before = count.batches();
        assert_eq!(lock.acquire().await.unwrap().release().await, Released::Released);
        assert_eq!(count.batches() - before, 2, "{lock:?}");
    }
    let scope = client.scope();
    let outer = scope.lock("scoped").acquire().await.unwrap();
    let before = count.batches();
    let inner = scope.lock("scoped").acquire().await.unwrap();
    assert_eq!(inner.release().await, Released::Released);
    assert_eq!(count.batches() - before, 0);
    outer.release().await.check().unwrap();
    let before = count.batches();
    let several = client.all(["a", "b", "c"]).acquire().await.unwrap();
    assert_eq!(count.batches() - before, 1);
    several.release().await.check().unwrap();
    // Each may be passed on, or handed over, to somebody else; they are sent together.
    assert_eq!(count.batches() - before, 4);
    let before = count.batches();
    let leader = client.election("leader").campaign().await.unwrap();
    leader.release().await.check().unwrap();
    assert_eq!(count.batches() - before, 2);
}

/// A value is looked at before it is changed. A run looks at its record, takes the lock and marks its start; at its end it marks
/// that and frees the lock. Where none is due the look is all.
async fn what_lies_in_cells_is_read_first(world: &World) {
    let (client, count) = metered(world).await;
    let before = count.batches();
    client.version("x").update(|old: Option<u64>| Some(old.unwrap_or(0) + 1)).await.unwrap();
    assert_eq!(count.batches() - before, 2);
    let before = count.batches();
    let nightly = client.job("nightly", Duration::from_hours(24));
    let run = nightly.start().await.unwrap().expect("nobody ran it");
    assert_eq!(count.batches() - before, 3);
    run.succeed().await.check().unwrap();
    assert_eq!(count.batches() - before, 5);
    let before = count.batches();
    assert!(nightly.start().await.unwrap().is_err());
    assert_eq!(count.batches() - before, 1);
}

plays! {
    a_pair_costs_two_round_trips,
    a_hand_over_costs_one_round_trip,
    every_kind_costs_two,
    what_lies_in_cells_is_read_first,
    a_pass_inside_costs_none,
    a_try_beside_a_guard_of_the_same_client_costs_none,
}
