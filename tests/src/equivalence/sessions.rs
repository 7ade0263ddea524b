//! Stores whose locks live with sessions, under a clock that the test moves: what their cells go by.

use std::sync::Arc;
use std::time::Duration;

use fencelock::Queue;
use fencelock::driver::zookeeper::ZookeeperStore;
use fencelock::options::Options;
use fencelock::port::Runtime;
use url::Url;

use super::Subject;
use super::subject::Stopped;

/// A session of these clients.
const TTL: Duration = Duration::from_secs(30);

/// The tree behind one chroot of a ZooKeeper.
pub struct ZookeeperSubject {
    url: Url,
    clock: Arc<Stopped>,
}

impl ZookeeperSubject {
    /// An empty chroot.
    pub fn new(url: Url) -> Self {
        Self { url, clock: Stopped::new() }
    }
}

impl Subject for ZookeeperSubject {
    type Store = Queue<ZookeeperStore>;

    async fn client(&self) -> Self::Store {
        let mut options = Options::default();
        options.ttl = TTL;
        let store = ZookeeperStore::new(&self.url, &[], &options, self.clock.clone());
        Queue::new(store.expect("the URL is in order"), self.clock.clone(), TTL)
    }

    fn now(&self) -> u64 {
        self.clock.wall()
    }

    async fn pass<'a>(&'a self, _: impl Iterator<Item = &'a Self::Store>, time: Duration) {
        self.clock.pass(time);
    }

    fn minds_stalls(&self) -> bool {
        false
    }

    fn numbers_versions(&self) -> bool {
        true
    }
}
