//! Random calls to the model of the entry queue and to etcd.

use fencelock::driver::etcd::EtcdStore;
use fencelock::options::Options;
use fencelock_tests::etcd::EtcdServer;
use fencelock_tests::queue_model::{Modes, random_calls_end_alike};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn random_calls_to_etcd_end_alike() {
    let server = EtcdServer::start();
    let seeds = if fencelock_tests::in_full() { 200 } else { 20 };
    random_calls_end_alike(Modes::Any, seeds, async |prefix, runtime| {
        let (url, options) = (server.url(&prefix), Options::default());
        EtcdStore::connect(&url, &[], &options, runtime).await.expect("it connects")
    })
    .await;
}
