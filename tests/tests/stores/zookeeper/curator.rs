//! Curator's own recipes and fencelock on one path of a real ZooKeeper.

use std::path::Path;
use std::time::Duration;

use fencelock_peers::Family;
use fencelock_tests::beside::{the_dead_make_way, turns_are_exclusive};
use fencelock_tests::other_library::OtherLibrary;
use fencelock_tests::session_store::{PATIENCE, client, nothing_is_left, waiting};
use fencelock_tests::zookeeper::ZookeeperServer;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn curator_and_fencelock_exclude_each_other() {
    let server = ZookeeperServer::start();
    let ours = client(&server, "curator").await;
    let (actor, url) = (Path::new(env!("CARGO_BIN_EXE_actor")), server.url("curator"));
    let started = OtherLibrary::start(actor, Family::Java, "curator", url.as_str());
    let Some(mut curator) = started else { return };
    let theirs = curator.take("x", 0, "exclusive").expect("it is free");
    assert!(ours.lock("x").try_acquire().await.unwrap().is_none());
    let next = tokio::spawn(ours.lock("x").acquire_within(PATIENCE));
    waiting(&ours, "x", 1).await;
    curator.release(&theirs);
    let guard = next.await.unwrap().expect("it is served");
    assert!(curator.take("x", 0, "exclusive").is_none());
    curator.send_take("x", 20_000, "exclusive");
    waiting(&ours, "x", 1).await;
    guard.release().await.check().unwrap();
    let theirs = curator.answer();
    assert!(ours.lock("x").try_acquire().await.unwrap().is_none());
    curator.release(&theirs);
    nothing_is_left(&server, "curator").await;
    // Readers share, writers do not.
    let reader = curator.take("rw", 0, "read").expect("it is free");
    let beside = ours.read_lock("rw").acquire().await.unwrap();
    assert!(ours.write_lock("rw").try_acquire().await.unwrap().is_none());
    assert!(curator.take("rw", 0, "write").is_none());
    curator.release(&reader);
    beside.release().await.check().unwrap();
    let write = ours.write_lock("rw").acquire().await.unwrap();
    assert!(curator.take("rw", 0, "read").is_none());
    write.release().await.check().unwrap();
    // Permits are counted together.
    let lease = curator.take("pool", 1000, "permit").expect("two are free");
    let permit = ours.semaphore("pool", 2).acquire().await.unwrap();
    assert!(ours.semaphore("pool", 2).try_acquire().await.unwrap().is_none());
    assert!(curator.take("pool", 300, "permit").is_none());
    curator.release(&lease);
    permit.release().await.check().unwrap();
}

/// Under load, and when either side is killed: Curator's session here is the longest that the server gives, 4 s.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn curator_and_fencelock_take_turns_and_make_way() {
    let server = ZookeeperServer::start();
    let (actor, url) = (env!("CARGO_BIN_EXE_actor"), server.url("turns"));
    let start = || OtherLibrary::start(Path::new(actor), Family::Java, "curator", url.as_str());
    let ours = format!("{url}?ttl=2s");
    turns_are_exclusive(&ours, start, false).await;
    the_dead_make_way(actor, &ours, start, Duration::from_secs(6)).await;
}
