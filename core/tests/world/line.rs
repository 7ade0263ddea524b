//! What happens between those who use one client.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use fencelock::layer::Fault;

use super::{World, check, given_held, look};

const MS: Duration = Duration::from_millis(1);
const S: Duration = Duration::from_secs(1);

/// Two readers of one client hold at once: neither stands in the line of the other.
pub(crate) async fn readers_of_one_client(world: &World) -> Result<(), String> {
    let client = world.client().await;
    let _first = client.read("x").acquire().await.expect("it is free");
    let second = client.read("x").acquire_within(S).await;
    check(second.is_ok(), || "the second reader waits for the first".to_owned())
}

/// Whoever enters a scope once more for longer has a lease of that length.
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
