//! Readers, writers, and readers that become the writer.

use fencelock::port::Mode;

use super::{Call, MS, S, World, check, granted, look};

/// A reader stands behind a writer that waits.
pub(crate) async fn reader_behind_a_writer(world: &World) -> Result<(), String> {
    let (one, two, three) = (world.client().await, world.client().await, world.client().await);
    let reader = one.read_lock("x").acquire().await.expect("it is free");
    let mut writer = world.start(two.write_lock("x").acquire());
    world.sleep(MS).await;
    let tried = three.read_lock("x").try_acquire().await.expect("memory answers");
    check(tried.is_none(), || "a reader has passed the writer".to_owned())?;
    reader.release().await.check().expect("it was held");
    world.sleep(MS).await;
    check(granted(&mut writer).is_some(), || "the writer is not served".to_owned())
}

/// Whoever has waited draws one fence, also if it hears of its turn again before that is answered.
pub(crate) async fn one_fence(world: &World) -> Result<(), String> {
    let (one, two) = (world.client().await, world.machine().await);
    let first = one.write_lock("x").acquire().await.expect("it is free");
    let mut second = world.start(two.client.write_lock("x").acquire());
    world.sleep(MS).await;
    two.line.delay_answers(Call::Fence, 3 * S);
    first.release().await.check().expect("it was held");
    world.sleep(4 * S).await;
    let guard = granted(&mut second);
    check(guard.is_some(), || "the writer is not served".to_owned())?;
    let drawn = two.line.count(Call::Fence);
    check(drawn == 1, || format!("{drawn} fences were drawn"))
}

/// A writer has the lock alone.
pub(crate) async fn writer_alone(world: &World) -> Result<(), String> {
    let (one, two) = (world.client().await, world.client().await);
    let first = one.read_lock("x").acquire().await.expect("it is free");
    let second = two.read_lock("x").acquire().await.expect("readers share");
    let tried = two.write_lock("x").try_acquire().await.expect("memory answers");
    check(tried.is_none(), || "a writer beside readers".to_owned())?;
    drop((first, second));
    world.sleep(MS).await;
    let writer = two.write_lock("x").try_acquire().await.expect("memory answers");
    check(writer.is_some(), || "the free lock is refused".to_owned())
}

/// One upgradeable reader at a time, beside readers.
pub(crate) async fn one_upgradeable(world: &World) -> Result<(), String> {
    let (one, two) = (world.client().await, world.client().await);
    let _first = one.upgradeable("x").acquire().await.expect("it is free");
    let _reader = two.read_lock("x").acquire().await.expect("readers share");
    let tried = two.upgradeable("x").try_acquire().await.expect("memory answers");
    check(tried.is_none(), || "two may become the writer".to_owned())
}

/// An upgrade that is asked for again and again has one entry, and nothing of it is left.
pub(crate) async fn upgrade_asked_again(world: &World) -> Result<(), String> {
    let (one, two) = (world.client().await, world.client().await);
    let mut guard = one.upgradeable("x").acquire().await.expect("it is free");
    let reader = two.read_lock("x").acquire().await.expect("readers share");
    let mut upgrade = Box::pin(guard.upgrade());
    for _ in 0..4 {
        check(look(&mut upgrade).await.is_pending(), || "a writer beside a reader".to_owned())?;
        world.sleep(S).await;
    }
    reader.release().await.check().expect("it was held");
    upgrade.await.expect("the reader is gone");
    guard.release().await.check().expect("it was held");
    let next = two.write_lock("x").try_acquire().await.expect("memory answers");
    check(next.is_some(), || "something of the upgrade is left".to_owned())
}

/// An upgrade waits for the readers that hold, keeps new ones out, and has a greater token.
pub(crate) async fn upgrade(world: &World) -> Result<(), String> {
    let (one, two, three) = (world.client().await, world.client().await, world.client().await);
    let mut guard = one.upgradeable("x").acquire().await.expect("it is free");
    let token = guard.token();
    let reader = two.read_lock("x").acquire().await.expect("readers share");
    let mut upgrade = Box::pin(guard.upgrade());
    for _ in 0..8 {
        check(look(&mut upgrade).await.is_pending(), || "a writer beside a reader".to_owned())?;
        world.sleep(MS).await;
    }
    let tried = three.read_lock("x").try_acquire().await.expect("memory answers");
    check(tried.is_none(), || "a new reader enters before the upgrade".to_owned())?;
    let asked = world.now();
    reader.release().await.check().expect("it was held");
    upgrade.await.expect("the reader is gone");
    let took = world.since(asked);
    check(took < 10 * MS, || format!("the upgrade was told after {took:?}"))?;
    check(guard.token() > token, || format!("{} after {token}", guard.token()))?;
    let mut waits = world.start(three.read_lock("x").acquire());
    world.sleep(MS).await;
    check(granted(&mut waits).is_none(), || "a reader beside the writer".to_owned())?;
    guard.release().await.check().expect("it was held");
    world.sleep(MS).await;
    check(granted(&mut waits).is_some(), || "the reader is not served".to_owned())?;
    world.sleep(MS).await;
    let left = world.entries().await;
    check(left.is_empty(), || format!("{left:?}"))
}

/// An upgrade does not wait for readers behind a writer that waits for it. When that one gives up, they do not enter beside it.
pub(crate) async fn reader_behind_an_upgrade(world: &World) -> Result<(), String> {
    let (one, two, three) = (world.client().await, world.client().await, world.client().await);
    let mut guard = one.upgradeable("x").acquire().await.expect("it is free");
    let writer = world.start(two.write_lock("x").acquire_within(S));
    world.sleep(MS).await;
    let mut reader = world.start(three.read_lock("x").acquire());
    world.sleep(MS).await;
    guard.upgrade().await.expect("nobody reads");
    world.sleep(2 * S).await;
    drop(writer);
    check(granted(&mut reader).is_none(), || "a reader beside the writer".to_owned())?;
    guard.release().await.check().expect("it was held");
    world.sleep(MS).await;
    check(granted(&mut reader).is_some(), || "the reader is not served".to_owned())
}

/// A writer that waited while an upgrade went past it has the greater token.
pub(crate) async fn writer_after_an_upgrade(world: &World) -> Result<(), String> {
    let (one, two) = (world.client().await, world.client().await);
    let mut guard = one.upgradeable("x").acquire().await.expect("it is free");
    let writer = world.start(two.write_lock("x").acquire());
    world.sleep(MS).await;
    guard.upgrade().await.expect("nobody reads");
    let token = guard.token();
    guard.release().await.check().expect("it was held");
    let next = writer.await.expect("it is served").token();
    check(next > token, || format!("{next} after {token}"))
}

/// A writer that becomes a reader lets others in, in its place.
pub(crate) async fn downgrade(world: &World) -> Result<(), String> {
    let (one, two, three) = (world.client().await, world.client().await, world.client().await);
    let mut guard = one.write_lock("x").acquire().await.expect("it is free");
    let mut reader = world.start(two.read_lock("x").acquire());
    world.sleep(MS).await;
    let mut writer = world.start(three.write_lock("x").acquire());
    world.sleep(MS).await;
    guard.downgrade(Mode::Read).await.expect("it is held");
    world.sleep(MS).await;
    let second = granted(&mut reader);
    check(second.is_some(), || "the reader is not let in".to_owned())?;
    check(granted(&mut writer).is_none(), || "a writer beside readers".to_owned())?;
    drop((guard, second));
    world.sleep(MS).await;
    check(granted(&mut writer).is_some(), || "the writer is not served".to_owned())
}
