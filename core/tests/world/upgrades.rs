//! Upgrades of one guard beside each other, and after each other.

use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fencelock::Client;
use fencelock::facade::{Facade, Form, Operation};
use fencelock::port::Mode;
use fencelock_sim::Fault;
use serde_json::Map;

use super::{World, check, look};

const MS: Duration = Duration::from_millis(1);

/// Of two calls that wait for a reader to leave one is given up; the other one writes.
pub(crate) async fn one_of_two(world: &World) -> Result<(), String> {
    let (facade, guard) = upgradeable(world).await;
    let reader = world.client().await.read_lock("x").acquire().await.expect("it reads beside");
    let mut stays = pin!(facade.perform(Operation::Upgrade { guard }));
    assert!(look(&mut stays).await.is_pending(), "a reader is there");
    {
        let mut goes = pin!(facade.perform(Operation::Upgrade { guard }));
        assert!(look(&mut goes).await.is_pending(), "a reader is there");
        world.sleep(MS).await;
    }
    world.sleep(MS).await;
    drop(reader);
    let upgraded = stays.await;
    check(upgraded.is_ok(), || format!("it ends with {upgraded:?}"))?;
    holds_as(world, Mode::Write).await
}

/// An upgrade is given up after the guard was turned down and became the writer again.
pub(crate) async fn of_before(world: &World) -> Result<(), String> {
    let (facade, guard) = upgradeable(world).await;
    let first = upgrade(&facade, guard).await;
    let down = Operation::Downgrade { guard, mode: Mode::Upgradeable };
    facade.perform(down).await.expect("it was the writer");
    let second = upgrade(&facade, guard).await;
    decline(&facade, guard, first).await;
    holds_as(world, Mode::Write).await?;
    decline(&facade, guard, second).await;
    holds_as(world, Mode::Upgradeable).await
}

/// A downgrade is on its way for longer than the upgrade that is asked for after it.
pub(crate) async fn past_a_downgrade(world: &World) -> Result<(), String> {
    let fault = Arc::new(Mutex::new(Fault::None));
    let (facade, guard) = upgradeable_of(world.struck(&fault).await).await;
    upgrade(&facade, guard).await;
    *fault.lock().unwrap() = Fault::Late(100 * MS);
    let down = Operation::Downgrade { guard, mode: Mode::Upgradeable };
    let mut down = pin!(facade.perform(down));
    assert!(look(&mut down).await.is_pending(), "it is on its way");
    *fault.lock().unwrap() = Fault::None;
    upgrade(&facade, guard).await;
    let turned = down.await;
    check(turned.is_ok() && facade.is_held(guard), || format!("the guard is lost: {turned:?}"))?;
    holds_as(world, Mode::Write).await
}

async fn upgradeable(world: &World) -> (Facade, u64) {
    upgradeable_of(world.client().await).await
}

async fn upgradeable_of(client: Client) -> (Facade, u64) {
    let facade = Facade::new(client);
    let form = Form { mode: Mode::Upgradeable, ..Form::default() };
    let acquire = Operation::Acquire { name: "x".into(), form, options: Map::default() };
    let granted = facade.perform(acquire).await.expect("it is free");
    let guard = granted.granted().expect("a grant").guard;
    (facade, guard)
}

/// The number of an upgrade.
async fn upgrade(facade: &Facade, guard: u64) -> u32 {
    let granted = facade.perform(Operation::Upgrade { guard }).await.expect("nobody reads beside");
    granted.granted().expect("a grant").upgrade.expect("it has a number")
}

async fn decline(facade: &Facade, guard: u64, upgrade: u32) {
    let declined = facade.perform(Operation::DeclineUpgrade { guard, upgrade }).await;
    declined.expect("it is still held");
}

/// What the store says once everything has arrived.
async fn holds_as(world: &World, mode: Mode) -> Result<(), String> {
    world.sleep(MS).await;
    let state = world.client().await.lock("x").inspect().await.expect("memory answers");
    let modes: Vec<_> = state.holders.iter().map(|holder| holder.mode).collect();
    check(modes == [mode], || format!("it is held as {modes:?}, not as {mode:?}"))
}
