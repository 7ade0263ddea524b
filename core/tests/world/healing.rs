//! A node of a quorum that is healed while its hold comes to its end.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fencelock::driver::memory::Memory;
use fencelock::port::LeaseHandle;
use fencelock::{Client, Quorum};
use fencelock_sim::{Chaos, Fault};

use super::{World, check};

const MS: Duration = Duration::from_millis(1);
const TTL: Duration = Duration::from_secs(2);

/// The faults that the next requests to a node meet.
type Next = Arc<Mutex<VecDeque<Fault>>>;

/// A node is asked twice to take a hold it does not know. The second time it does so when the hold was given back, and is
/// still kept in mind for another node's late vote.
pub(crate) async fn twice(world: &World) -> Result<(), String> {
    let nodes: Vec<(Memory, Next)> = (0..5).map(|_| Default::default()).collect();
    let handle = |(memory, next): &(Memory, Next)| {
        let (store, next) = (memory.store(world.node.clone()), next.clone());
        let meets = move || next.lock().unwrap().pop_front().unwrap_or(Fault::None);
        LeaseHandle::new(Chaos::new(store, world.node.clone(), meets))
    };
    let handles = nodes.iter().map(handle).collect();
    let quorum = Quorum::new(handles, world.node.clone(), TTL, 500 * MS).expect("five nodes");
    let client = Client::builder().runtime(world.node.clone()).store(quorum).await;
    let client = client.expect("memory connects");
    let other = of(world, &nodes[3].0).await;
    let other_guard = other.lock("x").acquire().await.expect("it is free");
    meets(&nodes[4].1, &[Fault::Late(400 * MS)]);
    let guard = client.lock("x").ttl(TTL).renew(false).acquire().await.expect("by a majority");
    // The votes that were not waited for leave, too.
    world.sleep(MS).await;
    other_guard.release().await.check().expect("it was held");
    meets(&nodes[3].1, &[Fault::None, Fault::Late(20 * MS), Fault::None, Fault::Late(60 * MS)]);
    // A majority answers behind those who know nothing of it.
    meets(&nodes[0].1, &[Fault::Late(MS), Fault::Late(MS)]);
    for pause in [9, 19] {
        guard.extend(TTL).await.expect("by a majority");
        world.sleep(pause * MS).await;
    }
    guard.release().await.check().expect("it was held");
    world.sleep(200 * MS).await;
    let holders = other.lock("x").inspect().await.expect("memory answers").holders;
    check(holders.is_empty(), || format!("a node keeps what was given back: {holders:?}"))
}

fn meets(next: &Next, faults: &[Fault]) {
    next.lock().unwrap().extend(faults);
}

async fn of(world: &World, memory: &Memory) -> Client {
    let builder = Client::builder().runtime(world.node.clone());
    builder.store(memory.store(world.node.clone())).await.expect("memory connects")
}
