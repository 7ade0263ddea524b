//! kazoo's own recipes and fencelock's dialect `kazoo` on one path of a real ZooKeeper.

use std::path::Path;
use std::time::Duration;

use fencelock::{Client, Code};
use fencelock_peers::Family;
use fencelock_tests::beside::{the_dead_make_way, turns_are_exclusive};
use fencelock_tests::other_library::OtherLibrary;
use fencelock_tests::session_store::{PATIENCE, code, waiting};
use fencelock_tests::zookeeper::ZookeeperServer;
use zookeeper_client::{Acls, CreateMode};

/// How soon the lock of the dead is granted: a session, and a second for the ticks of the server.
const FREED: Duration = Duration::from_secs(3);

fn url(server: &ZookeeperServer, chroot: &str) -> String {
    format!("{}?ttl=2s&dialect=kazoo", server.url(chroot))
}

async fn client(server: &ZookeeperServer, chroot: &str) -> Client {
    fencelock::connect(&url(server, chroot)).await.expect("it connects")
}

fn kazoo(server: &ZookeeperServer, chroot: &str) -> Option<OtherLibrary> {
    let actor = Path::new(env!("CARGO_BIN_EXE_actor"));
    let url = format!("{}?ttl=2s", server.url(chroot));
    OtherLibrary::start(actor, Family::Python, "kazoo", &url)
}

/// The names of nodes are kazoo's to the byte, and the folder stays, as kazoo expects.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn locks_lie_there_as_kazoo_lays_them_out() {
    let server = ZookeeperServer::shared();
    let ours = client(&server, "layout").await;
    let is_kazoos = |path: &str, marker: &str| {
        let name = path.rsplit('/').next().unwrap_or_default();
        let (owner, rest) = name.split_at(32);
        let hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        owner.bytes().all(hex)
            && rest.strip_prefix(marker).is_some_and(|number| {
                number.len() == 10 && number.bytes().all(|b| b.is_ascii_digit())
            })
    };
    let mutex = ours.lock("orders/42").acquire().await.unwrap();
    let write = ours.write_lock("rw").acquire().await.unwrap();
    let leaves = server.leaves("/layout").await;
    assert!(is_kazoos(&leaves[0], "__lock__"), "{leaves:?}");
    assert!(leaves[0].starts_with("/layout/orders/42/"), "{leaves:?}");
    assert!(is_kazoos(&leaves[1], "__lock__"), "{leaves:?}");
    assert_eq!(ours.names("").await.unwrap(), ["orders/42", "rw"]);
    write.release().await.check().unwrap();
    let read = ours.read_lock("rw").acquire().await.unwrap();
    let leaves = server.leaves("/layout/rw").await;
    assert!(is_kazoos(&leaves[0], "__rlock__"), "{leaves:?}");
    let state = ours.read_lock("rw").inspect().await.unwrap();
    assert_eq!(state.holders[0].token, Some(read.token()));
    drop((mutex, read));
    tokio::time::sleep(Duration::from_millis(1500)).await;
    let admin = server.admin().await;
    assert!(admin.check_stat("/layout/rw").await.unwrap().is_some(), "the folder stays");
}

/// A request that kazoo has no place for is refused with the reason, and nothing of it is left.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_kazoo_does_not_have_is_unsupported() {
    let server = ZookeeperServer::shared();
    let (ours, admin) = (client(&server, "lacks").await, server.admin().await);
    let permit = ours.semaphore("pool", 2).acquire().await.unwrap_err();
    assert_eq!(permit.code(), Code::Unsupported);
    assert!(permit.to_string().contains("semaphore"), "{permit}");
    let curator = "/lacks/y/_c_0f3c2a1e-5b7d-4e8f-9a0b-1c2d3e4f5a6b-lock-";
    let stays = CreateMode::Persistent.with_acls(Acls::anyone_all());
    admin.mkdir("/lacks/y", &stays).await.unwrap();
    let options = CreateMode::EphemeralSequential.with_acls(Acls::anyone_all());
    admin.create(curator, b"", &options).await.unwrap();
    let error = ours.lock("y").acquire().await.unwrap_err();
    assert_eq!(error.code(), Code::Conflict);
    assert!(error.to_string().contains("Curator"), "{error}");
    assert_eq!(server.leaves("/lacks/y").await.len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kazoo_and_fencelock_exclude_each_other() {
    let server = ZookeeperServer::shared();
    let ours = client(&server, "both").await;
    let Some(mut kazoo) = kazoo(&server, "both") else { return };
    let theirs = kazoo.take("x", 0, "exclusive").expect("it is free");
    assert!(ours.lock("x").try_acquire().await.unwrap().is_none());
    let next = tokio::spawn(ours.lock("x").acquire_within(PATIENCE));
    waiting(&ours, "x", 1).await;
    kazoo.release(&theirs);
    let guard = next.await.unwrap().expect("it is served");
    assert!(kazoo.take("x", 0, "exclusive").is_none());
    kazoo.send_take("x", 20_000, "exclusive");
    waiting(&ours, "x", 1).await;
    guard.release().await.check().unwrap();
    let theirs = kazoo.answer();
    assert!(ours.lock("x").try_acquire().await.unwrap().is_none());
    kazoo.release(&theirs);
    // Readers share, writers do not.
    let reader = kazoo.take("rw", 0, "read").expect("it is free");
    let beside = ours.read_lock("rw").acquire().await.unwrap();
    assert!(ours.write_lock("rw").try_acquire().await.unwrap().is_none());
    assert!(kazoo.take("rw", 0, "write").is_none());
    kazoo.release(&reader);
    assert!(kazoo.take("rw", 0, "write").is_none());
    beside.release().await.check().unwrap();
    let writer = kazoo.take("rw", 0, "write").expect("it is free");
    assert!(ours.read_lock("rw").try_acquire().await.unwrap().is_none());
    kazoo.release(&writer);
    let write = ours.write_lock("rw").acquire().await.unwrap();
    assert!(kazoo.take("rw", 0, "read").is_none());
    write.release().await.check().unwrap();
    // A mutex of kazoo's does not see readers; one of ours does not come beside them.
    let reader = kazoo.take("rw", 0, "read").expect("it is free");
    assert_eq!(code(ours.lock("rw").try_acquire().await), Some(Code::Conflict));
    kazoo.release(&reader);
}

/// Two of each take turns, and nobody is ever beside another one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn turns_under_load_are_exclusive() {
    let server = ZookeeperServer::start();
    turns_are_exclusive(&url(&server, "load"), || kazoo(&server, "load"), true).await;
}

/// If a process is killed while it holds the lock, the other side gets the lock when the session has ended.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_locks_of_the_dead_are_freed_for_the_other_side() {
    let server = ZookeeperServer::start();
    let start = || kazoo(&server, "dead");
    the_dead_make_way(env!("CARGO_BIN_EXE_actor"), &url(&server, "dead"), start, FREED).await;
}
