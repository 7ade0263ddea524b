//! A quorum over memory nodes that can be cut off, slowed and emptied.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use fencelock::driver::memory::Memory;
use fencelock::port::{LeaseHandle, Runtime, RuntimeHandle};
use fencelock::{Client, Quorum, Result};
use fencelock_sim::{Chaos, Count, Fault, Meter, SimNode};

use super::{MS, World};

/// The longest lease.
pub(crate) const LONGEST: Duration = Duration::from_millis(300);

pub(crate) struct Nodes {
    node: Arc<SimNode>,
    pub(crate) all: Vec<(Memory, Arc<Mutex<Fault>>)>,
    /// The counts of the requests that reach each of them.
    pub(crate) counts: Vec<Count>,
}

impl Nodes {
    pub(crate) fn new(world: &World, count: usize) -> Self {
        let node = |_| (Memory::new(), Arc::new(Mutex::new(Fault::None)));
        let counts = (0..count).map(|_| Count::default()).collect();
        Self { node: world.node.clone(), all: (0..count).map(node).collect(), counts }
    }

    /// Some of them, as a quorum of their own.
    pub(crate) fn first(&self, count: usize) -> Self {
        let (all, counts) = (self.all[..count].to_vec(), self.counts[..count].to_vec());
        Self { node: self.node.clone(), all, counts }
    }

    /// A client that sees the nodes' faults, or (an onlooker) none of them.
    pub(crate) async fn connect(&self, onlooker: bool) -> Client {
        let store = self.store(onlooker, LONGEST, 50 * MS);
        Client::builder().runtime(self.node.clone()).option("ttl", 150).store(store).await.unwrap()
    }

    pub(crate) fn store(&self, onlooker: bool, max_ttl: Duration, timeout: Duration) -> Quorum {
        self.quorum(onlooker, max_ttl, timeout).unwrap()
    }

    pub(crate) fn quorum(
        &self,
        onlooker: bool,
        max_ttl: Duration,
        timeout: Duration,
    ) -> Result<Quorum> {
        let node = |((memory, fault), count): (&(Memory, Arc<Mutex<Fault>>), &Count)| {
            let fault = fault.clone();
            let meets = move || if onlooker { Fault::None } else { *fault.lock().unwrap() };
            LeaseHandle::new(Chaos::new(
                Meter::new(memory.store(self.node.clone()), count.clone()),
                self.node.clone(),
                meets,
            ))
        };
        let nodes = self.all.iter().zip(&self.counts).map(node).collect();
        Quorum::new(nodes, self.node.clone(), max_ttl, timeout)
    }

    pub(crate) async fn client(&self) -> Client {
        self.connect(false).await
    }

    pub(crate) fn meet(&self, nodes: impl IntoIterator<Item = usize>, fault: Fault) {
        for node in nodes {
            *self.all[node].1.lock().unwrap() = fault;
        }
    }

    pub(crate) async fn sleep(&self, time: Duration) {
        self.node.sleep_until(self.node.now() + time).await;
    }

    pub(crate) fn restart(&self, node: usize) {
        let runtime: RuntimeHandle = self.node.clone();
        self.all[node].0.restart(&runtime);
    }

    /// On how many nodes the lock `x` is held.
    pub(crate) async fn keep(&self) -> usize {
        let mut count = 0;
        for (memory, _) in &self.all {
            let store = memory.store(self.node.clone());
            let client = Client::builder().runtime(self.node.clone()).store(store).await.unwrap();
            count += client.lock("x").inspect().await.unwrap().holders.len();
        }
        count
    }

    pub(crate) async fn are_kept_by(&self, count: usize, within: Duration) {
        let start = self.node.now();
        while self.keep().await != count {
            let kept = self.keep().await;
            assert!(self.node.now().since(start) < within, "held on {kept} nodes, not {count}");
            self.sleep(MS).await;
        }
    }
}
