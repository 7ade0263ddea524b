//! Releases that are lost with the server that confirmed them.

use std::time::Duration;

use fencelock::Released;
use fencelock::port::{Notice, Runtime};

use super::{World, check, look};
use crate::wire::Loses;

const MS: Duration = Duration::from_millis(1);
const S: Duration = Duration::from_secs(1);

/// How long it takes until another server has taken over: sentinels wait for up to 30 s, clusters for 15.
const FAILOVER: Duration = Duration::from_secs(15);

/// A hold that was given back just before another server took over is given back there too.
pub(crate) async fn hold_comes_back(world: &World) -> Result<(), String> {
    let ((one, wire), two) = (world.wired().await, world.client().await);
    let guard = one.lock("x").acquire().await.expect("it is free");
    wire.lose(Loses::Ends);
    guard.release().await.check().expect("it is confirmed");
    wire.lose(Loses::Nothing);
    world.sleep(FAILOVER).await;
    wire.tell(Notice::Gap);
    let asked = world.node.now();
    drop(two.lock("x").acquire().await.expect("it is granted"));
    let took = world.node.now().since(asked);
    check(took < S, || format!("it was granted after {took:?}"))
}

/// A store tells that a hold is gone: the guard knows at once, and another can have the lock. It tells that a ticket is gone: a new
/// one is made.
pub(crate) async fn told_that_it_is_gone(world: &World) -> Result<(), String> {
    let (one, first) = world.wired().await;
    let (two, second) = world.wired().await;
    let guard = one.lock("x").acquire().await.expect("it is free");
    let won = world.start(two.lock("x").acquire());
    world.sleep(100 * MS).await;
    let (hold, ticket) = (first.newest(), second.newest());
    second.tell(Notice::Gone { owner: ticket });
    world.sleep(100 * MS).await;
    check(second.newest() != ticket, || "the ticket is believed in".to_owned())?;
    first.tell(Notice::Gone { owner: hold });
    check(!guard.is_held(), || "the guard says held".to_owned())?;
    let outcome = guard.release().await;
    check(outcome == Released::AlreadyLost, || format!("released: {outcome:?}"))?;
    drop(won);
    Ok(())
}

/// A store that comes and goes is told once what was given back, until it has confirmed it.
pub(crate) async fn store_that_comes_and_goes(world: &World) -> Result<(), String> {
    let (one, wire) = world.wired().await;
    one.lock("x").acquire().await.expect("it is free").release().await.check().expect("it is held");
    wire.forget();
    for _ in 0..10 {
        wire.tell(Notice::Gap);
    }
    world.sleep(10 * MS).await;
    let first: usize = wire.batches().iter().sum();
    wire.tell(Notice::Gap);
    world.sleep(10 * MS).await;
    let both: usize = wire.batches().iter().sum();
    check([first, both] == [1, 2], || format!("{first} steps, {both} after one gap more"))
}

/// A ticket that was given back just before another server took over, and is served there, gives that back; `called`:
/// it is told to come and ask instead.
pub(crate) async fn ticket_comes_back(world: &World, called: bool) -> Result<(), String> {
    let ((one, wire), two) = (world.wired().await, world.client().await);
    wire.call(called);
    let guard = two.lock("x").acquire().await.expect("it is free");
    let mut waiting = Box::pin(one.lock("x").acquire());
    for _ in 0..8 {
        assert!(look(&mut waiting).await.is_pending(), "it is held");
        world.sleep(MS).await;
    }
    wire.lose(Loses::Ends);
    drop(waiting);
    world.sleep(10 * MS).await;
    wire.lose(Loses::Nothing);
    guard.release().await.check().expect("it was held");
    let asked = world.node.now();
    drop(two.lock("x").acquire().await.expect("it is granted"));
    let took = world.node.now().since(asked);
    check(took < S, || format!("it was granted after {took:?}"))
}
