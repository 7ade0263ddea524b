//! When a hold is renewed.

use std::time::Duration;

use super::{World, check};
use crate::wire::Loses;

const MS: Duration = Duration::from_millis(1);
const S: Duration = Duration::from_secs(1);

/// A push that comes when most of its grant is over is renewed before it is believed.
pub(crate) async fn late_push(world: &World) -> Result<(), String> {
    let (one, (two, wire)) = (world.client().await, world.wired().await);
    let guard = one.lock("x").acquire().await.expect("it is free");
    let won = world.start(two.lock("x").ttl(400 * MS).acquire());
    world.sleep(10 * MS).await;
    wire.lose(Loses::Refreshes);
    world.sleep(260 * MS).await;
    guard.release().await.check().expect("it was held");
    wire.lose(Loses::Nothing);
    let left = won.await.expect("the task ends").remaining();
    check(left > 300 * MS, || format!("it begins with {left:?} of 400 ms"))
}

/// A fixed lease begins whole, also after a push.
pub(crate) async fn fixed(world: &World) -> Result<(), String> {
    let (one, two) = (world.client().await, world.client().await);
    let guard = one.lock("x").acquire().await.expect("it is free");
    let won = world.start(two.lock("x").renew(false).ttl(2 * S).acquire());
    world.sleep(300 * MS).await;
    guard.release().await.check().expect("it was held");
    let left = won.await.expect("the task ends").remaining();
    check(left > 1950 * MS, || format!("it begins with {left:?} of 2 s"))
}

/// A hold that was pushed for 5 s and goes round inside is renewed in time, whatever its holders ask for.
pub(crate) async fn pushed_then_passed(world: &World) -> Result<(), String> {
    let (one, two) = (world.client().await, world.client().await);
    let guard = one.lock("x").acquire().await.expect("it is free");
    let (first, second) = (two.lock("x").acquire(), two.lock("x").max_hold(60 * S).acquire());
    let first = world.start(first);
    world.sleep(MS).await;
    let second = world.start(second);
    world.sleep(MS).await;
    guard.release().await.check().expect("it was held");
    first.await.expect("the task ends").release().await.check().expect("it was held");
    let guard = second.await.expect("the task ends");
    world.sleep(20 * S).await;
    check(guard.is_held(), || "it was lost though the store answered".to_owned())
}

/// A push that comes when two fifths of its lease are over is renewed as if it were half as long.
pub(crate) async fn pushed_halfway(world: &World) -> Result<(), String> {
    let (one, (two, wire)) = (world.client().await, world.wired().await);
    let guard = one.lock("x").acquire().await.expect("it is free");
    let won = world.start(two.lock("x").ttl(2 * S).acquire());
    world.sleep(MS).await;
    wire.lose(Loses::Refreshes);
    world.sleep(800 * MS).await;
    guard.release().await.check().expect("it was held");
    wire.lose(Loses::Nothing);
    let guard = won.await.expect("the task ends");
    let left = guard.remaining();
    assert!(left > S && left < 1300 * MS, "it was pushed with {left:?} of 2 s");
    wire.forget();
    world.sleep(400 * MS).await;
    check(wire.batches().len() == 1, || format!("renewals in time: {:?}", wire.batches()))
}

/// A hold that `max_hold` ends after two leases is renewed as often as any other.
pub(crate) async fn capped(world: &World) -> Result<(), String> {
    let (client, wire) = world.wired().await;
    let guard = client.lock("x").ttl(30 * S).max_hold(60 * S).acquire().await.expect("it is free");
    wire.forget();
    world.sleep(59 * S).await;
    check(guard.is_held(), || "it was lost".to_owned())?;
    let renewals = wire.batches().len();
    check(renewals <= 8, || format!("{renewals} renewals in two leases"))
}
