//! A store whose clock steps, and what is believed of it.

use std::time::Duration;

use fencelock::port::{Outcome, Runtime};
use fencelock::{Code, Token};

use super::{World, check};
use crate::wire::Distorts;

const S: Duration = Duration::from_secs(1);
const HOUR: i64 = 3_600_000_000;

/// A store that says an hour is left, since its clock has stepped back, is believed what was asked for.
pub(crate) async fn lavish(world: &World) -> Result<(), String> {
    let (client, wire) = world.wired().await;
    wire.distort(Distorts::Leases);
    let guard = client.lock("x").ttl(3 * S).acquire().await.expect("it is free");
    let first = guard.remaining();
    world.sleep(2 * S).await;
    let renewed = guard.remaining();
    check(first <= 3 * S && renewed <= 3 * S, || {
        format!("believes in {first:?}, then {renewed:?}")
    })?;
    check(renewed > S, || format!("it was not renewed: {renewed:?} left"))
}

/// A holder that died before the store's clock stepped back is in the way for a lease, not for an hour.
pub(crate) async fn far_end(world: &World) -> Result<(), String> {
    let (dead, other) = (world.bare().await, world.client().await);
    assert!(matches!(dead.take(false).await.1, Outcome::Granted { .. }));
    world.node.set_wall(-HOUR);
    let asked = world.node.now();
    let _guard = other.lock("x").acquire().await.expect("it is granted");
    let took = world.node.now().since(asked);
    check(took < 21 * S, || format!("the next one got it after {took:?}"))
}

/// A grant below a token that was seen is none: a try says so, a wait goes on until the store draws higher ones.
pub(crate) async fn aged(world: &World) -> Result<(), String> {
    let (client, wire) = world.wired().await;
    let guard = client.lock("x").acquire().await.expect("it is free");
    let seen = guard.token();
    guard.release().await.check().expect("it was held");
    wire.distort(Distorts::Tokens);
    let tried = client.lock("x").try_acquire().await;
    let code = tried.as_ref().err().map(fencelock::Error::code);
    check(code == Some(Code::Unavailable), || format!("a try ended with {tried:?} after {seen}"))?;
    let before = wire.batches().len();
    let waited = client.lock("x").acquire_within(10 * S).await;
    let text = waited.as_ref().err().map(ToString::to_string).unwrap_or_default();
    check(text.contains("its clock has stepped back"), || format!("a wait ended with {waited:?}"))?;
    let all = client.all(["x", "y"]).acquire_within(10 * S).await;
    check(all.is_err(), || format!("several ended with {all:?}"))?;
    let asked = wire.batches().len() - before;
    check(asked < 200, || format!("{asked} requests in 20 s"))?;
    let waiting = world.start(client.lock("x").acquire());
    world.sleep(S).await;
    wire.distort(Distorts::Nothing);
    let token = waiting.await.expect("the task ends").token();
    check(token > seen, || format!("{token} after {seen}"))
}

/// However many tokens a grant may draw, the counter stays close to the clock: a store that loses it is soon ahead again.
pub(crate) async fn outrun(world: &World) -> Result<(), String> {
    let client = world.client().await;
    let lock = client.lock("x").local(10_000);
    let mut last = Token::default();
    for _ in 0..100 {
        let guard = lock.acquire().await.expect("it is free");
        last = guard.token();
        guard.release().await.check().expect("it was held");
    }
    let wall = world.node.wall();
    let ahead = Duration::from_micros(last.get().saturating_sub(wall));
    check(ahead < Duration::from_millis(11), || format!("the counter is {ahead:?} ahead"))
}
