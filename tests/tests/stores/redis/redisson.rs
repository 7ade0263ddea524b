//! Locks in the dialect `redisson`, byte by byte: what Redisson's scripts would find, and what they would be told. The library
//! itself is played with in `interop`.

use std::time::Duration;

use fencelock::driver::redis::RedisStore;
use fencelock::port::{Action, Kind, Layout, LeaseStore, LockKey, Mode, Outcome};
use fencelock_tests::bare::{PATIENCE, TTL, taking};
use fencelock_tests::redisson::{FREE, Scene, THEIRS, field};
use fencelock_tests::servers::{RedisServer, rights, rights_as_redisson};
use redis::Commands;

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
async fn a_holder_of_theirs_that_entered_twice_is_left_alone() {
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
    scene.miss("orders", Mode::Exclusive).await;
}

#[tokio::test]
async fn what_is_laid_out_otherwise_is_no_lock() {
    let mut scene = Scene::new().await;
    let lock = LockKey::laid_out(Layout::Redisson, "orders");
    let () = scene.admin.set("orders", "a text").unwrap();
    for mode in [Mode::Exclusive, Mode::Write] {
        let take = Action::Take(taking(mode, 1, true));
        let answer = scene.step("orders", mode.kind(), scene.client.owner(), take).await;
        let failure = answer.unwrap_err();
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
        let url = server.url_with_rights();
        // Only where something is left out may it be that nobody is told.
        let patience = if without.is_some() { Duration::from_millis(300) } else { PATIENCE };
        everything(Scene::on(server, &url).await, patience).await
    };
    assert_eq!(idle(None).await, Ok(()));
    for word in more.iter().filter(|word| word.starts_with(['+', '~', '&'])) {
        assert!(idle(Some(word)).await.is_err(), "{word} is not needed");
    }
}

/// All kinds; what could not be done.
async fn everything(mut scene: Scene, patience: Duration) -> Result<(), String> {
    let ask = async |scene: &Scene, name: &str, mode: Mode, owner, action| {
        let answer = scene.step(name, mode.kind(), owner, action).await;
        answer.map_err(|failure| failure.error.to_string())
    };
    let mut listener = scene.server.admin();
    let mut heard = listener.as_pubsub();
    heard.psubscribe("redisson_*").unwrap();
    heard.set_read_timeout(Some(patience)).unwrap();
    let tag = |name: &str| format!("{{{name}}}");
    let () = scene.admin.rpush(format!("redisson_lock_queue:{}", tag("app:till")), THEIRS).unwrap();
    let told = [("app:till", Mode::Exclusive, 2), ("app:book", Mode::Read, 2)];
    for (name, mode, messages) in told {
        let owner = scene.client.owner();
        ask(&scene, name, mode, owner, Action::Take(taking(mode, 1, false))).await?;
        ask(&scene, name, mode, owner, Action::Renew { ttl: 2 * TTL }).await?;
        ask(&scene, name, mode, owner, Action::Read).await?;
        ask(&scene, name, mode, owner, FREE).await?;
        for _ in 0..messages {
            heard.get_message().map_err(|_| "nobody was told".to_owned())?;
        }
    }
    // Where clients listen by the other command.
    let mut sharded = scene.server.admin();
    sharded.set_read_timeout(Some(patience)).unwrap();
    drop(heard);
    drop(listener);
    redis::cmd("SSUBSCRIBE").arg("redisson_rwlock:{app:book}").exec(&mut sharded).unwrap();
    let owner = scene.client.owner();
    ask(&scene, "app:book", Mode::Read, owner, Action::Take(taking(Mode::Read, 1, false))).await?;
    ask(&scene, "app:book", Mode::Read, owner, FREE).await?;
    sharded.recv_response().map_err(|_| "nobody was told by SPUBLISH".to_owned())?;
    // A key that is no hash is refused as no lock.
    let () = scene.admin.set("app:book", "a text").unwrap();
    let read = Action::Take(taking(Mode::Read, 1, false));
    match ask(&scene, "app:book", Mode::Read, scene.client.owner(), read).await {
        Err(refusal) if refusal.contains("is no lock") => Ok(()),
        other => Err(format!("{other:?}")),
    }
}
