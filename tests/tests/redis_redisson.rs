//! Locks in the dialect `redisson`, byte by byte: what Redisson's scripts would find, and what they would be told. The library
//! itself is played with in `interop`.

use std::collections::BTreeMap;
use std::time::Duration;

use fencelock::driver::redis::RedisStore;
use fencelock::options::Options;
use fencelock::port::{
    Action, Kind, Layout, LeaseStore, LockKey, Mode, Outcome, OwnerId, Step, Take,
};
use fencelock_tests::bare::{Bare, TTL, take};
use fencelock_tests::servers::{RedisServer, rights, rights_as_redisson};
use redis::Commands;

const FREE: Action = Action::Free { open: false };
const THEIRS: &str = "0f8fad5b-d9cb-469f-a165-70867728950e:7";

struct Scene {
    client: Bare,
    admin: redis::Connection,
    server: RedisServer,
}

impl Scene {
    async fn new() -> Self {
        let server = RedisServer::start();
        let client = Bare::connect(&server.url(), &Options::default()).await.expect("it runs");
        Self { client, admin: server.admin(), server }
    }

    async fn ask(&self, name: &str, kind: Kind, owner: OwnerId, action: Action) -> Outcome {
        let lock = LockKey::laid_out(Layout::Redisson, name);
        let step = Step { lock, owner, kind, action };
        self.client.store.step(&[step]).await.remove(0).expect("the server answers")
    }

    async fn take(&self, name: &str, mode: Mode) -> (OwnerId, Outcome) {
        let Action::Take(plain) = take(false) else { unreachable!("it is a Take") };
        let (owner, take) = (self.client.owner(), Take { mode, limit: 2, ..plain });
        (owner, self.ask(name, mode.kind(), owner, Action::Take(take)).await)
    }

    async fn hold(&self, name: &str, mode: Mode) -> OwnerId {
        let (owner, outcome) = self.take(name, mode).await;
        assert!(matches!(outcome, Outcome::Granted { .. }), "{outcome:?}");
        owner
    }

    fn fields(&mut self, name: &str) -> BTreeMap<String, String> {
        self.admin.hgetall(name).expect("it is a hash or nothing")
    }

    fn lasts(&mut self, key: &str) -> bool {
        let left: i64 = self.admin.pttl(key).expect("it answers");
        left > 0 && left <= TTL.as_millis() as i64
    }

    /// What is published on all channels of Redisson's while the work is done.
    async fn heard<T>(&self, count: usize, work: impl Future<Output = T>) -> Vec<(String, String)> {
        let mut listener = self.server.admin();
        let mut heard = listener.as_pubsub();
        heard.psubscribe("redisson_*").unwrap();
        heard.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        work.await;
        let next = |_| heard.get_message().expect("a message comes");
        let messages = (0..count).map(next);
        let told = |message: redis::Msg| {
            (message.get_channel_name().to_owned(), message.get_payload().unwrap())
        };
        messages.map(told).collect()
    }
}

/// The owner as a holder of Redisson's.
fn field(owner: OwnerId) -> String {
    let text = owner.to_string();
    let part = |from: usize, to: usize| &text[from..to];
    let parts = [part(0, 8), part(8, 12), part(12, 16), part(16, 20), part(20, 32)];
    format!("{}:0", parts.join("-"))
}

#[tokio::test]
async fn a_mutex_is_a_hash_with_one_holder() {
    let mut scene = Scene::new().await;
    for name in ["orders", "a{b}c"] {
        let owner = scene.hold(name, Mode::Exclusive).await;
        assert_eq!(scene.fields(name), [(field(owner), "1".to_owned())].into());
        assert!(scene.lasts(name));
        let other = scene.client.owner();
        assert_eq!(scene.ask(name, Kind::Mutex, other, FREE).await, Outcome::Gone);
        // The first in the line of a fair lock listens for itself.
        let tag = if name.contains('{') { name.to_owned() } else { format!("{{{name}}}") };
        let () = scene.admin.rpush(format!("redisson_lock_queue:{tag}"), THEIRS).unwrap();
        let told = scene.heard(2, scene.ask(name, Kind::Mutex, owner, FREE)).await;
        let channel = format!("redisson_lock__channel:{tag}");
        let zero = "0".to_owned();
        let expected = [(channel.clone(), zero.clone()), (format!("{channel}:{THEIRS}"), zero)];
        assert_eq!(told, expected);
        assert!(scene.fields(name).is_empty());
    }
}

#[tokio::test]
async fn b07_b12_a_holder_of_theirs_that_entered_twice_is_left_alone() {
    let mut scene = Scene::new().await;
    let owner = scene.hold("orders", Mode::Exclusive).await;
    let () = scene.admin.del("orders").unwrap();
    let () = scene.admin.hset("orders", THEIRS, 2).unwrap();
    let () = scene.admin.pexpire("orders", 5_000).unwrap();
    let before = scene.fields("orders");
    for action in [FREE, Action::Renew { ttl: TTL }, Action::Leave { tombstone: None }] {
        let outcome = scene.ask("orders", Kind::Mutex, owner, action).await;
        assert_eq!(outcome, Outcome::Gone);
    }
    let (_, outcome) = scene.take("orders", Mode::Exclusive).await;
    assert!(matches!(outcome, Outcome::Held { left: Some(_) }), "{outcome:?}");
    assert_eq!(scene.fields("orders"), before);
    // One of the two is over.
    let () = scene.admin.hset("orders", THEIRS, 1).unwrap();
    let (_, outcome) = scene.take("orders", Mode::Exclusive).await;
    assert!(matches!(outcome, Outcome::Held { .. }), "{outcome:?}");
}

#[tokio::test]
async fn b13_a_read_lock_lasts_as_long_as_its_last_reader() {
    let mut scene = Scene::new().await;
    let first = scene.hold("shelf", Mode::Read).await;
    let second = scene.hold("shelf", Mode::Read).await;
    let reads = [(field(first), "1"), (field(second), "1"), ("mode".to_owned(), "read")];
    let reads = reads.map(|(field, value)| (field, value.to_owned()));
    assert_eq!(scene.fields("shelf"), reads.into());
    let lease = |owner| format!("{{shelf}}:{}:rwlock_timeout:1", field(owner));
    assert!(scene.lasts(&lease(first)) && scene.lasts(&lease(second)) && scene.lasts("shelf"));
    // A reader of theirs with less time goes; what ours have left is what the lock has.
    let () = scene.admin.hset("shelf", THEIRS, 1).unwrap();
    let theirs = format!("{{shelf}}:{THEIRS}:rwlock_timeout:1");
    let () = scene.admin.pset_ex(&theirs, 1, 3_000).unwrap();
    for owner in [first, second] {
        assert_eq!(scene.ask("shelf", Kind::ReadWrite, owner, FREE).await, Outcome::Freed);
    }
    let left: i64 = scene.admin.pttl("shelf").unwrap();
    assert!((1..=3_000).contains(&left), "{left}");
    let (_, outcome) = scene.take("shelf", Mode::Write).await;
    assert!(matches!(outcome, Outcome::Held { .. }), "{outcome:?}");
    let ours: u64 = scene.admin.exists(&[lease(first), lease(second)]).unwrap();
    assert_eq!(ours, 0);
}

#[tokio::test]
async fn b14_a_writer_is_one_field_and_its_end_wakes_all() {
    let mut scene = Scene::new().await;
    let owner = scene.hold("shelf", Mode::Write).await;
    let writes = [(format!("{}:write", field(owner)), "1"), ("mode".to_owned(), "write")];
    assert_eq!(scene.fields("shelf"), writes.map(|(f, v)| (f, v.to_owned())).into());
    let (stranger, outcome) = scene.take("shelf", Mode::Read).await;
    assert!(matches!(outcome, Outcome::Held { .. }), "{outcome:?}");
    assert_eq!(scene.ask("shelf", Kind::ReadWrite, stranger, FREE).await, Outcome::Gone);
    let told = scene.heard(1, scene.ask("shelf", Kind::ReadWrite, owner, FREE)).await;
    assert_eq!(told, [("redisson_rwlock:{shelf}".to_owned(), "1".to_owned())]);
    assert!(scene.fields("shelf").is_empty());
}

#[tokio::test]
async fn a_permit_is_an_id_with_an_end() {
    let mut scene = Scene::new().await;
    let owner = scene.hold("seats", Mode::Permit).await;
    let free: u32 = scene.admin.get("seats").unwrap();
    let ids: Vec<String> = scene.admin.zrange("{seats}:timeout", 0, -1).unwrap();
    assert_eq!((free, ids), (1, vec![owner.to_string()]));
    // One of theirs whose end has come is given back by whoever looks first.
    let () = scene.admin.set("seats", 0).unwrap();
    let () = scene.admin.zadd("{seats}:timeout", "theirs", 1).unwrap();
    let other = scene.hold("seats", Mode::Permit).await;
    let told = scene.heard(1, scene.ask("seats", Kind::Semaphore, owner, FREE)).await;
    assert_eq!(told, [("redisson_sc:{seats}".to_owned(), "1".to_owned())]);
    assert_eq!(scene.ask("seats", Kind::Semaphore, other, FREE).await, Outcome::Freed);
    let free: u32 = scene.admin.get("seats").unwrap();
    let rest: u32 = scene.admin.exists("{seats}:timeout").unwrap();
    assert_eq!((free, rest), (2, 0));
}

#[tokio::test]
async fn what_is_laid_out_otherwise_is_no_lock() {
    let mut scene = Scene::new().await;
    let lock = LockKey::laid_out(Layout::Redisson, "orders");
    let () = scene.admin.set("orders", "a text").unwrap();
    for mode in [Mode::Exclusive, Mode::Write, Mode::Permit] {
        let Action::Take(plain) = take(true) else { unreachable!("it is a Take") };
        let action = Action::Take(Take { mode, ..plain });
        let (owner, kind) = (scene.client.owner(), mode.kind());
        let step = Step { lock: lock.clone(), owner, kind, action };
        let failure = scene.client.store.step(&[step]).await.remove(0).unwrap_err();
        assert_eq!(failure.error.code(), fencelock::Code::Conflict);
    }
    let names = scene.client.store.names("").await.unwrap();
    assert!(names.is_empty() && !scene.lasts(&RedisStore::record_key(&lock)));
    let () = scene.admin.del("orders").unwrap();
    scene.hold("orders", Mode::Exclusive).await;
    assert_eq!(scene.client.store.names("ord").await.unwrap(), [lock]);
}

#[tokio::test]
async fn the_rights_of_the_manual_are_enough_and_none_is_idle() {
    let more = rights_as_redisson();
    let idle = async |without: Option<&str>| {
        let server = RedisServer::start();
        let mut admin = server.admin();
        for words in [rights(), more.clone()] {
            let words = words.into_iter().filter(|word| Some(*word) != without);
            let mut command = redis::cmd("ACL");
            command.arg("SETUSER").arg(words.collect::<Vec<_>>()).exec(&mut admin).unwrap();
        }
        let options = Options::default();
        let client = Bare::connect(&server.url_with_rights(), &options).await.expect("it may");
        let scene = Scene { client, admin, server };
        everything(scene).await
    };
    assert_eq!(idle(None).await, Ok(()));
    for word in more.iter().filter(|word| word.starts_with(['+', '~', '&'])) {
        assert!(idle(Some(word)).await.is_err(), "{word} is not needed");
    }
}

/// All kinds; what could not be done.
async fn everything(mut scene: Scene) -> Result<(), String> {
    let ask = async |scene: &Scene, name: &str, mode: Mode, owner, action| {
        let lock = LockKey::laid_out(Layout::Redisson, name);
        let step = Step { lock, owner, kind: mode.kind(), action };
        let answer = scene.client.store.step(&[step]).await.remove(0);
        answer.map_err(|failure| failure.error.to_string())
    };
    let mut listener = scene.server.admin();
    let mut heard = listener.as_pubsub();
    heard.psubscribe("redisson_*").unwrap();
    heard.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    let tag = |name: &str| format!("{{{name}}}");
    let () = scene.admin.rpush(format!("redisson_lock_queue:{}", tag("app:till")), THEIRS).unwrap();
    let told = [
        ("app:till", Mode::Exclusive, 2),
        ("app:book", Mode::Read, 1),
        ("app:pool", Mode::Permit, 1),
    ];
    for (name, mode, messages) in told {
        let Action::Take(plain) = take(false) else { unreachable!("it is a Take") };
        let owner = scene.client.owner();
        let action = Action::Take(Take { mode, limit: 1, ..plain });
        ask(&scene, name, mode, owner, action).await?;
        ask(&scene, name, mode, owner, Action::Renew { ttl: 2 * TTL }).await?;
        ask(&scene, name, mode, owner, Action::Read).await?;
        ask(&scene, name, mode, owner, FREE).await?;
        for _ in 0..messages {
            heard.get_message().map_err(|_| "nobody was told".to_owned())?;
        }
    }
    // Where clients listen by the other command.
    let mut sharded = scene.server.admin();
    sharded.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    drop(heard);
    drop(listener);
    redis::cmd("SSUBSCRIBE").arg("redisson_sc:{app:pool}").exec(&mut sharded).unwrap();
    let Action::Take(plain) = take(false) else { unreachable!("it is a Take") };
    let owner = scene.client.owner();
    let action = Action::Take(Take { mode: Mode::Permit, limit: 1, ..plain });
    ask(&scene, "app:pool", Mode::Permit, owner, action).await?;
    ask(&scene, "app:pool", Mode::Permit, owner, FREE).await?;
    sharded.recv_response().map_err(|_| "nobody was told by SPUBLISH".to_owned())?;
    // What is no number is told to be no semaphore.
    let () = scene.admin.set("app:pool", "a text").unwrap();
    let Action::Take(plain) = take(false) else { unreachable!("it is a Take") };
    let action = Action::Take(Take { mode: Mode::Permit, limit: 1, ..plain });
    match ask(&scene, "app:pool", Mode::Permit, scene.client.owner(), action).await {
        Err(refusal) if refusal.contains("is no lock") => Ok(()),
        other => Err(format!("{other:?}")),
    }
}
