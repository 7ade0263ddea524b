//! Tests of several tasks that use one client.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fencelock::port::{Runtime, RuntimeHandle};
use fencelock_sim::Fault;
use futures_util::future::{Either, select};

use super::{World, check, given_held, look};

const MS: Duration = Duration::from_millis(1);
const S: Duration = Duration::from_secs(1);

/// Two readers of one client hold at once: neither stands in the line of the other.
pub(crate) async fn readers_of_one_client(world: &World) -> Result<(), String> {
    let client = world.client().await;
    let _first = client.read_lock("x").acquire().await.expect("it is free");
    let second = client.read_lock("x").acquire_within(S).await;
    check(second.is_ok(), || "the second reader waits for the first".to_owned())
}

/// A hold that enters a scope once more for longer has a lease of that length.
pub(crate) async fn longer_inside(world: &World) -> Result<(), String> {
    let scope = world.client().await.scope();
    let _outer = scope.lock("x").ttl(S).acquire().await.expect("it is free");
    let inner = scope.lock("x").ttl(30 * S).acquire().await.expect("the scope holds it");
    let left = inner.remaining();
    check(left > 25 * S, || format!("it begins with {left:?} of 30 s"))
}

/// A hold of which little is left is not passed on inside: whoever is next begins with a lease of its own.
pub(crate) async fn little_left(world: &World) -> Result<(), String> {
    let fault = Arc::new(Mutex::new(Fault::None));
    let client = world.struck(&fault).await;
    let lock = || client.lock("x").ttl(12 * MS);
    let guard = lock().acquire().await.expect("it is free");
    let next = world.start(lock().acquire());
    *fault.lock().unwrap() = Fault::RequestLost;
    world.sleep(15 * MS / 2).await;
    *fault.lock().unwrap() = Fault::None;
    guard.release().await.check().expect("it was held");
    let left = next.await.expect("the task ends").remaining();
    check(left > 8 * MS, || format!("it begins with {left:?} of 12 ms"))
}

/// A machine that stood still between a pass inside and the look has no grant.
pub(crate) async fn passed_unseen(world: &World) -> Result<(), String> {
    let (node, client) = world.machine().await;
    let lock = || client.lock("x").ttl(400 * MS);
    let guard = lock().acquire().await.expect("it is free");
    let mut waiting = Box::pin(lock().acquire());
    assert!(look(&mut waiting).await.is_pending(), "it is held");
    guard.release().await.check().expect("it was held");
    node.pause();
    world.sleep(S).await;
    let held = given_held(&mut waiting).await;
    node.resume();
    check(held, || "a guard was given out that is not held".to_owned())
}

/// It is still its turn then, before that of others who asked before it looked.
pub(crate) async fn passed_unseen_in_turn(world: &World) -> Result<(), String> {
    let (node, client) = world.machine().await;
    let lock = || client.lock("x").ttl(400 * MS);
    let guard = lock().acquire().await.expect("it is free");
    let mut waiting = Box::pin(lock().acquire());
    assert!(look(&mut waiting).await.is_pending(), "it is held");
    guard.release().await.check().expect("it was held");
    node.pause();
    world.sleep(S).await;
    node.resume();
    let mut later = Box::pin(lock().acquire());
    assert!(look(&mut later).await.is_pending(), "somebody waits for it");
    match select(world.start(waiting), world.start(later)).await {
        Either::Left((served, _)) => {
            let served = served.expect("the task ends");
            check(served.is_held(), || "the first was served, and does not hold".to_owned())
        }
        Either::Right(_) => Err("who asked later was served first".to_owned()),
    }
}

/// A hold that was passed on inside is renewed as before, and its loss told to whoever has it by then.
pub(crate) async fn lost_after_a_pass(world: &World) -> Result<(), String> {
    let client = world.client().await;
    let lock = || client.lock("x").ttl(3 * S);
    let guard = lock().acquire().await.expect("it is free");
    let next = world.start(lock().acquire());
    world.sleep(MS).await;
    guard.release().await.check().expect("it was held");
    let next = next.await.expect("the task ends");
    world.sleep(10 * S).await;
    check(next.is_held(), || "it was lost though the store answered".to_owned())?;
    let runtime: RuntimeHandle = world.node.clone();
    world.memory.restart(&runtime);
    let told = world.node.now();
    next.lost().await;
    let took = world.node.now().since(told);
    check(took <= S + 10 * MS, || format!("the loss was told after {took:?}"))
}

/// The store lost its data and granted the lock to another client. Whoever waits in the first one waits for that, and gets a later
/// token.
pub(crate) async fn passed_after_data_loss(world: &World) -> Result<(), String> {
    let (one, two) = (world.client().await, world.client().await);
    let guard = one.lock("x").acquire().await.expect("it is free");
    let inside = world.start(one.lock("x").acquire());
    world.sleep(15 * MS).await;
    let runtime: RuntimeHandle = world.node.clone();
    world.memory.restart(&runtime);
    let other = two.lock("x").acquire().await.expect("the store knows nobody");
    let token = other.token();
    // Of its own hold the store knows nothing.
    let _ = guard.release().await;
    world.sleep(20 * MS).await;
    other.release().await.check().expect("it was held");
    let inside = inside.await.expect("the task ends").token();
    check(inside > token, || format!("it got {inside} after {token}"))
}

/// When a hold has gone round inside for long enough, it is freed and asked for anew in one request.
pub(crate) async fn freed_and_taken_at_once(world: &World) -> Result<(), String> {
    let (client, wire) = world.wired().await;
    let lock = || client.lock("x").local(1);
    let mut guard = lock().acquire().await.expect("it is free");
    let first = world.start(lock().acquire());
    world.sleep(MS).await;
    let second = world.start(lock().acquire());
    world.sleep(MS).await;
    wire.forget();
    for turn in [first, second] {
        guard.release().await.check().expect("it was held");
        guard = turn.await.expect("the task ends");
    }
    let asked = wire.batches();
    check(asked == [2], || format!("batches of {asked:?} for a pass inside and a new hold"))
}

/// A scope that holds a lock enters it once more at once, whoever of its client waits for it.
pub(crate) async fn once_more_past_the_line(world: &World) -> Result<(), String> {
    let client = world.client().await;
    let scope = client.scope();
    let _outer = scope.lock("x").acquire().await.expect("it is free");
    let _waiting = world.start(client.lock("x").acquire());
    world.sleep(MS).await;
    let inner = scope.lock("x").acquire_within(S).await;
    check(inner.is_ok(), || "it waits for those who wait for it".to_owned())
}

/// However many wait inside, another client gets its turn.
pub(crate) async fn budget(world: &World) -> Result<(), String> {
    let (one, two) = (world.client().await, world.client().await);
    let over = Arc::new(AtomicBool::new(false));
    for _ in 0..3 {
        let (lock, over, node) = (one.lock("x"), over.clone(), world.node.clone());
        world.node.spawn(Box::pin(async move {
            while !over.load(Ordering::Relaxed) {
                let guard = lock.acquire().await.expect("it is granted");
                node.sleep_until(node.now() + MS).await;
                guard.release().await.check().expect("it was held");
            }
        }));
    }
    world.sleep(5 * MS).await;
    let asked = world.node.now();
    let won = two.lock("x").acquire_within(S).await;
    let took = world.node.now().since(asked);
    over.store(true, Ordering::Relaxed);
    drop(won);
    check(took < 20 * MS, || format!("the other client waited for {took:?}"))
}
