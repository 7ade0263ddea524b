//! More leases than go out at once.

use std::time::Duration;

use super::{World, check};

const MANY: usize = 7000;
const TTL: Duration = Duration::from_secs(30);

/// Those that are due at once go out in parts, one after the other, and each of them once.
pub(crate) async fn many_leases(world: &World) -> Result<(), String> {
    let (client, wire) = world.wired().await;
    let mut guards = Vec::new();
    for number in 0..MANY {
        guards.push(client.lock(&number.to_string()).ttl(TTL).acquire().await.expect("it is free"));
    }
    wire.forget();
    world.sleep(TTL / 3 + Duration::from_millis(100)).await;
    let batches = wire.batches();
    check(batches.iter().all(|steps| *steps <= 1200), || format!("batches of {batches:?}"))?;
    check(batches.iter().sum::<usize>() == MANY, || format!("{MANY} in batches of {batches:?}"))?;
    check(guards.iter().all(|guard| guard.is_held()), || "one was lost".to_owned())
}
