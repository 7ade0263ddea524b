//! The clauses of the entry queue on a real etcd.

#[path = "../entry_worlds.rs"]
mod worlds;

use fencelock::driver::etcd::EtcdStore as Store;
use fencelock::options::Options;
use fencelock::port::RuntimeHandle;
use fencelock_tests::etcd::EtcdServer as Server;
use url::Url;

async fn connect(url: &Url, runtime: RuntimeHandle) -> Store {
    Store::connect(url, &[], &Options::default(), runtime).await.expect("it connects")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_clause_that_needs_no_virtual_time_holds() {
    worlds::play(&Server::start()).await;
}
