//! Random calls to the model of the entry queue and to ZooKeeper.

use fencelock::driver::zookeeper::ZookeeperStore;
use fencelock::options::Options;
use fencelock_tests::queue_model::{Modes, random_calls_end_alike};
use fencelock_tests::zookeeper::ZookeeperServer;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn random_calls_to_zookeeper_end_alike() {
    let server = ZookeeperServer::start();
    let seeds = if fencelock_tests::in_full() { 200 } else { 20 };
    // Permits lie in a folder of their own.
    random_calls_end_alike(Modes::OneKind, seeds, async |chroot, runtime| {
        let (url, options) = (server.url(&chroot), Options::default());
        ZookeeperStore::new(&url, &[], &options, runtime).expect("the URL is in order")
    })
    .await;
}
