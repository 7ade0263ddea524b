//! Answers and watches that are lost or late, and entries that vanish.

use super::{Call, MS, S, World, check, granted, look};

/// An entry whose join was not answered is removed, however long the store refuses to.
pub(crate) async fn unanswered_join(world: &World) -> Result<(), String> {
    let (one, two) = (world.machine().await, world.client().await);
    one.line.lose_answers(&[Call::Join]);
    one.line.lose(&[Call::Leave]);
    let tried = one.client.lock("x").try_acquire().await;
    check(tried.is_err(), || format!("{tried:?}"))?;
    world.sleep(300 * S).await;
    check(world.entries().await.len() == 1, || "it was removed by nobody".to_owned())?;
    one.line.lose_answers(&[]);
    one.line.lose(&[]);
    let next = two.lock("x").acquire_within(5 * S).await;
    check(next.is_ok(), || format!("{next:?}"))?;
    check(world.entries().await.len() == 1, || "something is left".to_owned())
}

/// A join that arrives behind its removal makes no entry.
pub(crate) async fn late_join(world: &World) -> Result<(), String> {
    let (one, two) = (world.machine().await, world.client().await);
    one.line.delay(Call::Join, 2 * S);
    let mut asked = Box::pin(one.client.lock("x").acquire());
    assert!(look(&mut asked).await.is_pending(), "it is under way");
    world.sleep(MS).await;
    assert!(look(&mut asked).await.is_pending(), "it is under way");
    drop(asked);
    world.sleep(3 * S).await;
    let left = world.entries().await;
    check(left.is_empty(), || format!("{left:?}"))?;
    let next = two.lock("x").acquire_within(S).await;
    check(next.is_ok(), || format!("{next:?}"))
}

/// A watch that is never told costs a second.
pub(crate) async fn lost_watch(world: &World) -> Result<(), String> {
    let (one, two) = (world.client().await, world.machine().await);
    let guard = one.lock("x").acquire().await.expect("it is free");
    two.line.deafen(true);
    let mut won = world.start(two.client.lock("x").acquire());
    world.sleep(100 * MS).await;
    guard.release().await.check().expect("it was held");
    world.sleep(S + 10 * MS).await;
    check(granted(&mut won).is_some(), || "it waits for a watch".to_owned())
}

/// A release whose answer is lost frees the lock.
pub(crate) async fn unanswered_release(world: &World) -> Result<(), String> {
    let (one, two) = (world.machine().await, world.client().await);
    let guard = one.client.lock("x").acquire().await.expect("it is free");
    let won = world.start(two.lock("x").acquire());
    world.sleep(MS).await;
    one.line.lose(&[Call::Leave]);
    let released = guard.release().await;
    check(released == fencelock::Released::Unconfirmed, || format!("{released:?}"))?;
    one.line.lose(&[]);
    let _next = won.await.expect("it is served");
    check(world.entries().await.len() == 1, || "something is left".to_owned())
}

/// A waiter whose entry is gone waits with a new one, not behind nobody.
pub(crate) async fn own_entry_gone(world: &World) -> Result<(), String> {
    let (one, two, three) = (world.client().await, world.client().await, world.client().await);
    let guard = one.lock("x").acquire().await.expect("it is free");
    let mut second = world.start(two.lock("x").acquire());
    world.sleep(MS).await;
    let entries = world.entries().await;
    world.remove(&entries[1]).await;
    world.sleep(2 * S).await;
    let mut third = world.start(three.lock("x").acquire());
    world.sleep(MS).await;
    guard.release().await.check().expect("it was held");
    world.sleep(2 * S).await;
    let holders = [granted(&mut second), granted(&mut third)];
    let count = holders.iter().flatten().filter(|guard| guard.is_held()).count();
    check(count == 1, || format!("{count} hold"))?;
    check(holders[0].is_some(), || "it has lost its turn".to_owned())
}

/// A waiter goes on waiting with another session when its own has ended.
pub(crate) async fn waiters_session_ends(world: &World) -> Result<(), String> {
    let (one, two) = (world.client().await, world.machine().await);
    let guard = one.lock("x").acquire().await.expect("it is free");
    let mut won = world.start(two.client.lock("x").acquire());
    world.sleep(S).await;
    two.line.lose(&[Call::Beat]);
    world.sleep(60 * S).await;
    two.line.lose(&[]);
    world.sleep(5 * S).await;
    check(world.entries().await.len() == 2, || "it does not wait any more".to_owned())?;
    guard.release().await.check().expect("it was held");
    world.sleep(MS).await;
    check(granted(&mut won).is_some(), || "it is not served".to_owned())
}
