//! Other clients' locks and fencelock's under one prefix of a real etcd.

use std::path::Path;
use std::time::{Duration, Instant};

use fencelock_peers::Family;
use fencelock_tests::beside::{the_dead_make_way, turns_are_exclusive};
use fencelock_tests::etcd::EtcdServer;
use fencelock_tests::other_library::OtherLibrary;
use fencelock_tests::session_store::{PATIENCE, client, waiting};

/// jetcd, with the lock service of the server.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn jetcd_and_fencelock_exclude_each_other() {
    let server = EtcdServer::start();
    let start = |actor: &Path, url: &str| OtherLibrary::start(actor, Family::Java, "jetcd", url);
    exclude_each_other(&server, start).await;
    take_turns_and_make_way(&server, start).await;
}

/// The package `concurrency` of etcd's own client.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn gos_concurrency_and_fencelock_exclude_each_other() {
    let server = EtcdServer::start();
    let start = |actor: &Path, url: &str| OtherLibrary::start(actor, Family::Go, "clientv3", url);
    exclude_each_other(&server, start).await;
    take_turns_and_make_way(&server, start).await;
}

/// Under load, and when either side is killed. The others' leases are 5 s long.
async fn take_turns_and_make_way(
    server: &EtcdServer,
    start: impl Fn(&Path, &str) -> Option<OtherLibrary>,
) {
    let (actor, url) = (env!("CARGO_BIN_EXE_actor"), server.url("turns"));
    let start = || start(Path::new(actor), url.as_str());
    let ours = format!("{url}?ttl=2s");
    turns_are_exclusive(&ours, start, false).await;
    the_dead_make_way(actor, &ours, start, Duration::from_secs(7)).await;
}

async fn exclude_each_other(
    server: &EtcdServer,
    start: impl Fn(&Path, &str) -> Option<OtherLibrary>,
) {
    let ours = client(server, "p").await;
    let (actor, url) = (Path::new(env!("CARGO_BIN_EXE_actor")), server.url("p"));
    let Some(mut other) = start(actor, url.as_str()) else { return };
    let theirs = other.take("x", 5000, "exclusive").expect("it is free");
    assert!(ours.lock("x").try_acquire().await.unwrap().is_none());
    let next = tokio::spawn(ours.lock("x").acquire_within(PATIENCE));
    waiting(&ours, "x", 1).await;
    other.release(&theirs);
    let guard = next.await.unwrap().expect("it is served");
    assert!(other.take("x", 300, "exclusive").is_none());
    other.send_take("x", 20_000, "exclusive");
    waiting(&ours, "x", 1).await;
    guard.release().await.check().unwrap();
    assert!(!other.answer().is_null(), "it is served");
    assert!(ours.lock("x").try_acquire().await.unwrap().is_none());

    // It dies with the lock, which is free when its lease of 5 s has ended.
    other.kill();
    let killed = Instant::now();
    let guard = ours.lock("x").acquire_within(PATIENCE).await.expect("its lease ends");
    assert!(killed.elapsed() >= Duration::from_secs(2), "its lease had been kept alive");
    guard.release().await.check().unwrap();
    assert_eq!(server.keys("p/x/"), [] as [&str; 0]);
}
