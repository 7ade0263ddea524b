//! A client that is closed while it gives something back.

use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fencelock::Released;
use fencelock_sim::Fault;
use futures_util::future::join;

use super::{World, check, look};

const MS: Duration = Duration::from_millis(1);

/// A release is overtaken by the close of its client: the lock was given back, not lost.
pub(crate) async fn overtakes_a_release(world: &World) -> Result<(), String> {
    let fault = Arc::new(Mutex::new(Fault::None));
    let client = world.struck(&fault).await;
    let guard = client.lock("x").acquire().await.expect("it is free");
    let other = client.lock("y").acquire().await.expect("it is free");
    // For this the close has to wait.
    *fault.lock().unwrap() = Fault::Late(200 * MS);
    drop(other);
    world.sleep(MS).await;
    *fault.lock().unwrap() = Fault::Late(100 * MS);
    let mut release = pin!(guard.release());
    assert!(look(&mut release).await.is_pending(), "it is on its way");
    *fault.lock().unwrap() = Fault::None;
    let (released, ()) = join(release, client.close()).await;
    check(released != Released::AlreadyLost, || format!("{released:?}"))
}
