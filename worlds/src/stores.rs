//! The stores that the clients of a world share: one store, or the nodes of a quorum.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use fencelock::driver::record::{Holder, Record};
use fencelock::port::{LeaseHandle, LockKey};
use fencelock::{Queue, Quorum};
use fencelock_sim::SimNode;

use super::network::Network;
use super::network_store::EntryStore;
use super::plan::{Plan, Subject};

/// The shortest lease there is.
const SHORTEST_SESSION: Duration = Duration::from_millis(10);

/// The stores, each behind its own network. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Stores {
    networks: Arc<[Network]>,
    /// Until when each of them cannot be relied on.
    ill: Arc<Mutex<Vec<Duration>>>,
}

impl Stores {
    /// One store, or an odd number of nodes.
    pub fn new(networks: Vec<Network>) -> Self {
        let ill = vec![Duration::ZERO; networks.len()];
        Self { networks: networks.into(), ill: Arc::new(Mutex::new(ill)) }
    }

    /// All of them.
    pub fn all(&self) -> &[Network] {
        &self.networks
    }

    /// The only one, or the first of the nodes.
    pub fn first(&self) -> &Network {
        &self.networks[0]
    }

    /// Whether they are nodes that vote.
    pub fn vote(&self) -> bool {
        self.networks.len() > 1
    }

    fn majority(&self) -> usize {
        self.networks.len() / 2 + 1
    }

    /// The store as a client sees it.
    pub fn connect(
        &self,
        node: &Arc<SimNode>,
        channel: &str,
        timeout: Duration,
        plan: &Plan,
    ) -> LeaseHandle {
        if plan.subject == Subject::Sessions {
            let store = EntryStore::new(self.first().connect(node, channel, timeout));
            let runtime = Arc::<SimNode>::clone(node);
            // A world that was cut down may ask for nothing.
            let ttl = plan.longest_lease().max(SHORTEST_SESSION);
            return LeaseHandle::new(Queue::new(store, runtime, ttl));
        }
        let mut stores: Vec<LeaseHandle> = self
            .networks
            .iter()
            .map(|network| LeaseHandle::new(network.connect(node, channel, timeout)))
            .collect();
        if stores.len() == 1 {
            return stores.remove(0);
        }
        let quorum = Quorum::new(stores, Arc::<SimNode>::clone(node), plan.max_ttl, timeout);
        LeaseHandle::new(quorum.expect("worlds have an odd number of nodes"))
    }

    /// A node cannot be relied on until `until`. Until when, therefore, a majority cannot; zero if it can.
    pub fn fall_ill(&self, node: usize, until: Duration) -> Duration {
        let mut ill = self.ill.lock().unwrap_or_else(PoisonError::into_inner);
        ill[node] = ill[node].max(until);
        let mut ends = ill.clone();
        ends.sort_unstable_by(|one, other| other.cmp(one));
        ends[self.networks.len() - self.majority()]
    }

    /// Nodes that can be relied on since a while.
    pub fn healthy(&self, now: Duration) -> impl Iterator<Item = &Network> {
        let ill = self.ill.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let healthy = move |(network, until): (_, Duration)| (until <= now).then_some(network);
        self.networks.iter().zip(ill).filter_map(healthy)
    }

    /// Whether a majority keeps a hold of which `is_it` is true, or may: a node that cannot be relied on does no harm.
    pub fn back(
        &self,
        key: &LockKey,
        now: Duration,
        is_it: impl Fn(&Holder, &Network) -> bool,
    ) -> bool {
        let keeps = |network: &&Network| network.holders(key).iter().any(|one| is_it(one, network));
        if !self.vote() {
            return keeps(&self.first());
        }
        let ill = self.networks.len() - self.healthy(now).count();
        self.healthy(now).filter(keeps).count() + ill >= self.majority()
    }

    /// Whether enough nodes can be had now to grant a lock.
    pub fn are_free(&self, key: &LockKey, now: Duration) -> bool {
        let free = |network: &&Network| network.holders(key).is_empty();
        if self.vote() {
            self.healthy(now).filter(free).count() >= self.majority()
        } else {
            free(&self.first())
        }
    }
}

impl Network {
    /// The holders of the lock now, by the store's clock.
    pub(super) fn holders(&self, key: &LockKey) -> Vec<Holder> {
        self.store(|store| {
            let live = |holder: &&Holder| holder.ends > store.now();
            let held = |record: &Record| record.holders.iter().filter(live).cloned().collect();
            store.records().get(key).map(held).unwrap_or_default()
        })
    }
}
