//! A lock that becomes free wakes those who wait for it by another library and do not poll: python-redis-lock's waiters
//! by an element of their list, Spring's by a message. The libraries themselves are played with in `interop`.

use std::time::Duration;

use fencelock::Code;
use fencelock::options::Options;
use fencelock::port::{Action, Kind, LeaseStore, LockKey, Mode, Outcome, OwnerId, Step};
use fencelock_tests::bare::{Bare, TTL, take, taking};
use fencelock_tests::servers::RedisServer;
use redis::Commands;
use url::Url;

const FREE: Action = Action::Free { open: false };

async fn connect(url: &Url) -> Bare {
    Bare::connect(url, &Options::default()).await.expect("the server takes clients")
}

async fn ask(client: &Bare, lock: &LockKey, owner: OwnerId, action: Action) -> Outcome {
    let step = Step { lock: lock.clone(), owner, kind: Kind::Mutex, action };
    client.store.step(&[step]).await.remove(0).expect("the server answers")
}

async fn hold(client: &Bare, lock: &LockKey) -> OwnerId {
    let owner = client.owner();
    assert!(matches!(ask(client, lock, owner, take(true)).await, Outcome::Granted { .. }));
    owner
}

/// How many signals python-redis-lock's waiters would find, and for how many milliseconds.
fn signals(admin: &mut redis::Connection, name: &str) -> (u64, i64) {
    let list = format!("lock-signal:{name}");
    let signals = admin.llen(&list).expect("it is a list");
    let left = admin.pttl(&list).expect("it answers");
    let () = admin.del(&list).expect("it answers");
    (signals, left)
}

#[tokio::test]
async fn a_release_leaves_one_signal_for_python_redis_lock() {
    let server = RedisServer::start();
    let (client, mut admin) = (connect(&server.url()).await, server.admin());
    let lock = LockKey::plain("lock:", "orders");
    let owner = hold(&client, &lock).await;
    assert_eq!(ask(&client, &lock, client.owner(), FREE).await, Outcome::Gone);
    assert_eq!(signals(&mut admin, "orders").0, 0, "who frees nothing wakes nobody");
    assert_eq!(ask(&client, &lock, owner, FREE).await, Outcome::Freed);
    let (count, left) = signals(&mut admin, "orders");
    assert!(count == 1 && (1..=1000).contains(&left), "{count} signals for {left} ms");
    // The waiters are ours first: nobody else could have it.
    let (owner, next) = (hold(&client, &lock).await, client.owner());
    assert!(matches!(ask(&client, &lock, next, take(true)).await, Outcome::Queued { .. }));
    assert_eq!(ask(&client, &lock, owner, FREE).await, Outcome::Freed);
    assert_eq!(signals(&mut admin, "orders").0, 0, "it was handed over");
    assert_eq!(ask(&client, &lock, next, FREE).await, Outcome::Freed);
    assert_eq!(signals(&mut admin, "orders").0, 1);
}

#[tokio::test]
async fn the_long_ways_of_a_release_wake_too() {
    let server = RedisServer::start();
    let (client, mut admin) = (connect(&server.url()).await, server.admin());
    let lock = LockKey::plain("lock:", "orders");
    let cancelled = Action::Leave { tombstone: Some(TTL) };
    let owner = hold(&client, &lock).await;
    assert_eq!(ask(&client, &lock, client.owner(), cancelled.clone()).await, Outcome::Gone);
    assert_eq!(signals(&mut admin, "orders").0, 0);
    assert_eq!(ask(&client, &lock, owner, FREE).await, Outcome::Freed);
    assert_eq!(signals(&mut admin, "orders").0, 1, "with a tombstone in the record");
    let owner = hold(&client, &lock).await;
    assert_eq!(ask(&client, &lock, owner, cancelled).await, Outcome::Freed);
    assert_eq!(signals(&mut admin, "orders").0, 1, "an attempt that is undone");
    let owner = client.owner();
    let take = taking(Mode::Write, 1, true);
    for action in [Action::Take(take), FREE] {
        let step = Step { lock: lock.clone(), owner, kind: Kind::ReadWrite, action };
        client.store.step(&[step]).await.remove(0).expect("the server answers");
    }
    assert_eq!(signals(&mut admin, "orders").0, 1, "another kind");
}

#[tokio::test]
async fn a_release_is_published_for_spring() {
    let server = RedisServer::start();
    let client = connect(&server.url()).await;
    let mut listener = server.admin();
    let mut heard = listener.as_pubsub();
    heard.psubscribe("*-channel:*").unwrap();
    heard.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    for (prefix, name) in
        [("", "shop:orders"), ("shop", "orders"), (":", "orders"), ("shop:", "a:b")]
    {
        let lock = LockKey::plain(prefix, name);
        let owner = hold(&client, &lock).await;
        assert_eq!(ask(&client, &lock, owner, FREE).await, Outcome::Freed);
    }
    let message = heard.get_message().expect("one message comes");
    let key: String = message.get_payload().unwrap();
    assert_eq!((message.get_channel_name(), &*key), ("shop-channel:shop:a:b", "shop:a:b"));
}

#[tokio::test]
async fn who_may_not_wake_can_release_all_the_same() {
    let server = RedisServer::start();
    let mut admin = server.admin();
    let rules =
        ["SETUSER", "worker", "on", ">secret", "~lock:*", "~fencelock:*", "&fencelock:*", "+@all"];
    let () = redis::cmd("ACL").arg(&rules).exec(&mut admin).unwrap();
    let url = format!("redis://worker:secret@127.0.0.1:{}", server.port());
    let client = connect(&url.parse().unwrap()).await;
    let lock = LockKey::plain("lock:", "orders");
    let owner = hold(&client, &lock).await;
    assert_eq!(ask(&client, &lock, owner, FREE).await, Outcome::Freed);
    assert_eq!(signals(&mut admin, "orders").0, 0);
    let held: u64 = admin.exists(lock.as_str()).unwrap();
    assert_eq!(held, 0);
}

/// A prefix and a name that are harmless each may spell a key of ours together.
#[tokio::test]
async fn no_prefix_leads_to_our_own_keys() {
    let server = RedisServer::start();
    let url = format!("{}?dialect=plain:fence", server.url());
    let client = fencelock::connect(&url).await.expect("the server takes clients");
    let refused = client.lock("lock:born").try_acquire().await.expect_err("it is our own key");
    assert_eq!(refused.code(), Code::Invalid, "{refused}");
    drop(client.lock("lock_born").try_acquire().await.expect("this one is not"));
}
