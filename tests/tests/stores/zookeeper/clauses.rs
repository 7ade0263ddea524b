//! The clauses of the entry queue on a real ZooKeeper.

#[path = "../entry_worlds.rs"]
mod worlds;

use std::future::ready;

use fencelock::driver::zookeeper::ZookeeperStore as Store;
use fencelock::options::Options;
use fencelock::port::RuntimeHandle;
use fencelock_tests::zookeeper::ZookeeperServer as Server;
use url::Url;

/// A connection is made for each session.
fn connect(url: &Url, runtime: RuntimeHandle) -> impl Future<Output = Store> {
    let store = Store::new(url, &[], &Options::default(), runtime);
    ready(store.expect("the URL is in order"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_clause_that_needs_no_virtual_time_holds() {
    worlds::play(&Server::start()).await;
}
