//! Readers and writers.

use super::{MS, World, check, granted};

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
