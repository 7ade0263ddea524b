//! A quorum over memory nodes that can be cut off, slowed and emptied.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use fencelock::driver::memory::Memory;
use fencelock::port::{LeaseHandle, Runtime};
use fencelock::{Client, Quorum};
use fencelock_sim::{Chaos, Count, Fault, Meter};

use super::Machine;

const MS: Duration = Duration::from_millis(1);
/// The longest lease.
pub(crate) const LONGEST: Duration = Duration::from_millis(300);

pub(crate) struct Nodes {
    pub(crate) machine: Machine,
    pub(crate) all: Vec<(Memory, Arc<Mutex<Fault>>)>,
    /// The counts of the requests that reach each of them.
    pub(crate) counts: Vec<Count>,
}

impl Nodes {
    pub(crate) fn new(machine: &Machine, count: usize) -> Self {
        let node = |_| (Memory::new(), Arc::new(Mutex::new(Fault::None)));
        let counts = (0..count).map(|_| Count::default()).collect();
        Self { machine: machine.clone(), all: (0..count).map(node).collect(), counts }
    }

    /// Some of them, as a quorum of their own.
    pub(crate) fn first(&self, count: usize) -> Self {
        let (all, counts) = (self.all[..count].to_vec(), self.counts[..count].to_vec());
        Self { machine: self.machine.clone(), all, counts }
    }

    /// A client that sees the nodes' faults, or (an onlooker) none of them.
    pub(crate) async fn connect(&self, onlooker: bool) -> Client {
        let store = self.store(onlooker, LONGEST, 50 * MS);
        Client::builder()
            .runtime(self.machine.runtime())
            .option("ttl", 150)
            .store(store)
            .await
            .unwrap()
    }

    pub(crate) fn store(&self, onlooker: bool, max_ttl: Duration, timeout: Duration) -> Quorum {
        let node = |((memory, fault), count): (&(Memory, Arc<Mutex<Fault>>), &Count)| {
            let fault = fault.clone();
            let meets = move || if onlooker { Fault::None } else { *fault.lock().unwrap() };
            LeaseHandle::new(Chaos::new(
                Meter::new(memory.store(self.machine.runtime()), count.clone()),
                self.machine.runtime(),
                meets,
            ))
        };
        let nodes = self.all.iter().zip(&self.counts).map(node).collect();
        Quorum::new(nodes, self.machine.runtime(), max_ttl, timeout).unwrap()
    }

    pub(crate) async fn client(&self) -> Client {
        self.connect(false).await
    }

    pub(crate) fn meet(&self, nodes: impl IntoIterator<Item = usize>, fault: Fault) {
        for node in nodes {
            *self.all[node].1.lock().unwrap() = fault;
        }
    }

    pub(crate) fn restart(&self, node: usize) {
        self.all[node].0.restart(&self.machine.runtime());
    }

    /// On how many nodes the lock `x` is held.
    pub(crate) async fn keep(&self) -> usize {
        let mut count = 0;
        for (memory, _) in &self.all {
            let store = memory.store(self.machine.runtime());
            let client =
                Client::builder().runtime(self.machine.runtime()).store(store).await.unwrap();
            count += client.lock("x").inspect().await.unwrap().holders.len();
        }
        count
    }

    pub(crate) async fn are_kept_by(&self, count: usize, within: Duration) {
        let start = self.machine.now();
        while self.keep().await != count {
            assert!(
                self.machine.now().since(start) < within,
                "held on {} nodes, not {count}",
                self.keep().await
            );
            self.machine.sleep(MS).await;
        }
    }
}
