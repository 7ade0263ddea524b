//! Faults between a client and a real Redis server, and the error code of each.

use std::io::{Read, Write};
use std::time::{Duration, Instant};

use fencelock::options::Options;
use fencelock::port::{
    Action, Answer, Applied, Failure, Kind, LeaseStore, LockKey, Mode, Notice, Outcome, Step,
};
use fencelock::{Code, Error};
use fencelock_servers::own::free_port;
use fencelock_tests::bare::{Bare, PATIENCE, TTL, take, taking};
use fencelock_tests::proxy::Proxy;
use fencelock_tests::servers::{RedisServer, held};
use redis::Commands;

async fn connect(url: &url::Url) -> Bare {
    Bare::connect(url, &Options::default()).await.expect("the server takes clients")
}

async fn refusal(url: &str) -> Error {
    let mut options = Options::default();
    options.connect_timeout = Duration::from_millis(500);
    match Bare::connect(&url.parse().unwrap(), &options).await {
        Ok(_) => panic!("{url} is refused"),
        Err(error) => error,
    }
}

/// Everything a log may show of a fault.
fn shown(error: &Error) -> String {
    let fields = serde_json::to_string(error).unwrap();
    format!("{error} {error:?} {fields} {:?}", std::error::Error::source(error))
}

fn assert_failure(failure: &Failure, applied: Applied, code: Code) {
    assert_eq!((failure.applied, failure.error.code()), (applied, code), "{failure:?}");
}

/// Waits for what another process does in its own time.
async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let give_up = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < give_up, "{what}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

#[tokio::test]
async fn a_wrong_password_is_named_and_never_shown() {
    let server = RedisServer::start_with(&["--requirepass", "right"]);
    let port = server.port();
    for url in [
        format!("redis://:hunter%2B2@127.0.0.1:{port}"),
        format!("redis://me:hunter%2B2@127.0.0.1:{port}"),
    ] {
        let error = refusal(&url).await;
        assert_eq!(error.code(), Code::Auth, "{error}");
        assert!(!shown(&error).contains("hunter"), "{}", shown(&error));
    }
    let error = refusal(&format!("redis://127.0.0.1:{port}")).await;
    assert_eq!(error.code(), Code::Auth, "{error}");
    let client = connect(&format!("redis://:right@127.0.0.1:{port}").parse().unwrap()).await;
    assert!(!format!("{:?}", client.store).contains("right"));
}

/// U23: a password in a file is read anew for each connection.
#[tokio::test]
async fn u23_a_password_that_changes_is_read_anew() {
    let server = RedisServer::start_with(&["--requirepass", "hunter2"]);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("password");
    let place = format!("127.0.0.1:{}?password_file={}", server.port(), file.display());
    let error = fencelock::connect(&format!("redis://{place}")).await.unwrap_err();
    assert_eq!(error.fields()["argument"], "password_file", "there is none yet: {error}");
    std::fs::write(&file, "hunter2\n").unwrap();
    let both = fencelock::connect(&format!("redis://:hunter2@{place}")).await.unwrap_err();
    assert_eq!(both.fields()["argument"], "password_file", "{both}");
    let client = fencelock::connect(&format!("redis://{place}")).await.unwrap();
    let kept = client.lock("kept").acquire().await.unwrap();
    let mut other = redis::Client::open(format!("redis://:hunter2@127.0.0.1:{}", server.port()))
        .and_then(|client| client.get_connection())
        .unwrap();
    redis::pipe()
        .cmd("CONFIG")
        .arg("SET")
        .arg("requirepass")
        .arg("hunter3")
        .cmd("CLIENT")
        .arg("KILL")
        .arg("SKIPME")
        .arg("yes")
        .exec(&mut other)
        .unwrap();
    // With the former password there is no way back.
    let refused = client.lock("x").acquire_within(Duration::from_secs(2)).await.unwrap_err();
    assert_eq!(refused.code(), Code::Auth, "{refused}");
    assert!(!shown(&refused).contains("hunter"), "{}", shown(&refused));
    std::fs::write(&file, "hunter3").unwrap();
    let guard = client.lock("x").acquire_within(PATIENCE).await.unwrap();
    guard.release().await.check().unwrap();
    kept.release().await.check().expect("nothing is lost");
}

#[tokio::test]
async fn a_server_that_repeats_the_password_is_not_repeated() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        // A Redis 5, to the letter.
        let old = "-ERR unknown command `HELLO`, with args beginning with: `3`, `AUTH`, `default`, `hunter2`\r\n";
        let (mut client, _) = listener.accept().unwrap();
        let _ = client.read(&mut vec![0; 1 << 16]);
        let _ = client.write_all(old.repeat(4).as_bytes());
        // Bytes that nobody reads would break the connection before the replies are read.
        let _ = std::io::copy(&mut client, &mut std::io::sink());
    });
    let error = refusal(&format!("redis://:hunter2@127.0.0.1:{port}")).await;
    assert_eq!(error.code(), Code::Unsupported, "{error}");
    assert!(error.message().contains("RESP3"), "{error}");
    assert!(!shown(&error).contains("hunter2"), "{}", shown(&error));
}

#[tokio::test]
async fn a_server_without_lua_is_told_so() {
    let gone = ["SCRIPT", "EVAL", "EVALSHA"].map(|name| ["--rename-command", name, ""]);
    let server = RedisServer::start_with(&gone.concat());
    let error = refusal(server.url().as_str()).await;
    assert_eq!(error.code(), Code::Unsupported, "{error}");
    assert!(error.message().contains("Lua scripts"), "{error}");
}

#[tokio::test]
async fn a_server_with_as_many_clients_as_it_takes_is_told_so() {
    let server = RedisServer::start();
    let mut one = server.admin();
    redis::cmd("CONFIG").arg(&["SET", "maxclients", "1"]).exec(&mut one).unwrap();
    // It hangs up at once, most often on somebody who is just sending.
    for _ in 0..20 {
        let error = refusal(server.url().as_str()).await;
        assert_eq!((error.code(), error.retryable()), (Code::Unavailable, true), "{error}");
        assert!(error.message().contains("maxclients"), "{error}");
    }
}

#[tokio::test]
async fn an_absent_or_silent_server_is_unavailable() {
    let free = format!("127.0.0.1:{}", free_port());
    let error = refusal(&format!("redis://{free}")).await;
    assert_eq!((error.code(), error.retryable()), (Code::Unavailable, true), "{error}");
    assert_eq!(error.fields()["server"], free);
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let error = refusal(&format!("redis://{}", silent.local_addr().unwrap())).await;
    assert_eq!((error.code(), error.retryable()), (Code::Unavailable, true), "{error}");
    let server = RedisServer::start();
    let error = refusal(&format!("{}/99", server.url())).await;
    assert_eq!(error.code(), Code::Invalid, "{error}");
}

#[tokio::test]
async fn a_key_that_is_no_lock_is_a_conflict_and_stays_as_it_is() {
    let server = RedisServer::start();
    let (client, mut admin) = (connect(&server.url()).await, server.admin());
    for key in [&*held("other"), "fencelock:{other}:lock:other"] {
        let () = admin.rpush(key, 7).unwrap();
        for action in [
            take(true),
            Action::Refresh { ttl: TTL },
            Action::Renew { ttl: TTL },
            Action::Free { open: false },
            Action::Leave { tombstone: Some(TTL) },
            Action::Read,
        ] {
            let failure = client.fail("other", action).await;
            assert_failure(&failure, Applied::No, Code::Conflict);
            assert_eq!(failure.error.fields()["key"], "other");
        }
        let keys: Vec<String> = admin.keys("*").unwrap();
        assert_eq!(keys, [key]);
        let () = admin.del(key).unwrap();
    }
    // In one script with others, it fails alone.
    let () = admin.rpush(held("other"), 7).unwrap();
    let owner = client.hold("mine").await;
    let renew = |lock| Step {
        lock: LockKey::new(lock),
        owner,
        kind: Kind::Mutex,
        action: Action::Renew { ttl: TTL },
    };
    let answers = client.store.step(&[renew("other"), renew("mine"), renew("none")]).await;
    assert_failure(answers[0].as_ref().unwrap_err(), Applied::No, Code::Conflict);
    assert!(matches!(answers[1], Ok(Outcome::Granted { .. })), "{answers:?}");
    assert!(matches!(answers[2], Ok(Outcome::Gone)), "{answers:?}");
}

#[tokio::test]
async fn a_replica_takes_no_locks() {
    let master = RedisServer::start();
    let replica =
        RedisServer::start_with(&["--replicaof", "127.0.0.1", &master.port().to_string()]);
    let client = connect(&replica.url()).await;
    let failure = client.fail("orders", take(true)).await;
    assert_failure(&failure, Applied::No, Code::Unavailable);
    assert!(failure.error.retryable() && failure.error.message().contains("replica"));
}

#[tokio::test]
async fn a_full_server_still_releases_and_renews() {
    let server = RedisServer::start();
    let (mut client, mut admin) = (connect(&server.url()).await, server.admin());
    let owner = client.hold("orders").await;
    let waiter = client.queue("orders").await;
    let () = redis::cmd("CONFIG").arg(&["SET", "maxmemory", "1"]).exec(&mut admin).unwrap();
    let failure = client.fail("shelf", take(true)).await;
    assert_failure(&failure, Applied::No, Code::Unavailable);
    assert!(failure.error.message().contains("memory"), "{}", failure.error);
    let failure = client.fail("orders", take(true)).await;
    assert_failure(&failure, Applied::No, Code::Unavailable);
    let renewed = client.ask("orders", owner, Action::Renew { ttl: 2 * TTL }).await;
    assert!(matches!(renewed, Outcome::Granted { .. }));
    assert_eq!(client.ask("orders", owner, Action::Free { open: false }).await, Outcome::Freed);
    assert!(matches!(client.hear().await, Notice::Granted { owner, .. } if owner == waiter));
    let renewed = client.ask("orders", waiter, Action::Refresh { ttl: TTL }).await;
    assert!(matches!(renewed, Outcome::Granted { .. }));
    assert_eq!(client.ask("orders", waiter, Action::Free { open: false }).await, Outcome::Freed);
}

#[tokio::test]
async fn a_user_without_rights_is_told_so() {
    let server = RedisServer::start();
    let mut admin = server.admin();
    let rules = ["SETUSER", "clerk", "on", ">pw", "~*", "&*", "+@all", "-publish", "-hset"];
    let () = redis::cmd("ACL").arg(&rules).exec(&mut admin).unwrap();
    let url = format!("redis://clerk:pw@127.0.0.1:{}", server.port()).parse().unwrap();
    let client = connect(&url).await;
    let failure = client.fail("orders", take(true)).await;
    // Said in the middle of the script: what it might have written before is not known.
    assert_failure(&failure, Applied::Unknown, Code::Auth);
    let keys: Vec<String> = admin.keys("*").unwrap();
    assert!(keys.is_empty(), "{keys:?}");
    // Who may not publish is served by refreshes.
    let rules = ["SETUSER", "clerk", "+hset"];
    let () = redis::cmd("ACL").arg(&rules).exec(&mut admin).unwrap();
    let owner = client.hold("orders").await;
    let waiter = client.queue("orders").await;
    assert_eq!(client.ask("orders", owner, Action::Free { open: false }).await, Outcome::Freed);
    let granted = client.ask("orders", waiter, Action::Refresh { ttl: TTL }).await;
    assert!(matches!(granted, Outcome::Granted { .. }));
    let rules = ["SETUSER", "clerk", "resetchannels"];
    let () = redis::cmd("ACL").arg(&rules).exec(&mut admin).unwrap();
    let error = refusal(url.as_str()).await;
    assert_eq!(error.code(), Code::Auth, "{error}");
}

#[tokio::test]
async fn scripts_that_were_flushed_are_loaded_again() {
    let server = RedisServer::start();
    let (client, mut admin) = (connect(&server.url()).await, server.admin());
    let owner = client.hold("orders").await;
    let () = redis::cmd("SCRIPT").arg("FLUSH").exec(&mut admin).unwrap();
    let other = client.owner();
    let step =
        |lock, owner, action| Step { lock: LockKey::new(lock), owner, kind: Kind::Mutex, action };
    let answers = client
        .store
        .step(&[
            step("orders", owner, Action::Free { open: false }),
            step("orders", other, take(true)),
            step("shelf", owner, Action::Renew { ttl: TTL }),
        ])
        .await;
    assert!(
        matches!(answers[..], [Ok(Outcome::Freed), Ok(Outcome::Granted { .. }), Ok(Outcome::Gone)]),
        "{answers:?}"
    );
}

/// By its hash alone, a script that is new to the server would be refused, and carried out behind the rest of its batch.
#[tokio::test]
async fn a_batch_keeps_its_order_though_the_server_does_not_know_a_script() {
    let server = RedisServer::start();
    let step =
        |owner, action| Step { lock: LockKey::new("pool"), owner, kind: Kind::Semaphore, action };
    let (take, free) = (Action::Take(taking(Mode::Permit, 1, false)), Action::Free { open: false });
    let other = connect(&server.url()).await;
    let owner = other.owner();
    other.store.step(&[step(owner, take.clone()), step(owner, free.clone())]).await;
    let client = connect(&server.url()).await;
    let renew = Action::Renew { ttl: TTL };
    let batch = [step(owner, take), step(owner, renew), step(owner, free)];
    let answers = client.store.step(&batch).await;
    let granted = |answer: &Answer| matches!(answer, Ok(Outcome::Granted { .. }));
    assert!(answers[..2].iter().all(granted), "{answers:?}");
    assert!(matches!(answers[2], Ok(Outcome::Freed)), "{answers:?}");
}

#[tokio::test]
async fn a_reply_cut_in_the_middle_is_unknown_and_undone() {
    let server = RedisServer::start();
    let proxy = Proxy::before(server.port()).await;
    let mut client = connect(&proxy.url()).await;
    proxy.cut_after(3);
    let owner = client.owner();
    let failure = client.step("orders", owner, take(true)).await.unwrap_err();
    assert_failure(&failure, Applied::Unknown, Code::Unavailable);
    let left = client.ask("orders", owner, Action::Leave { tombstone: Some(2 * TTL) }).await;
    assert_eq!(left, Outcome::Freed);
    assert_eq!(client.hear().await, Notice::Gap);
    client.hold("orders").await;
}

#[tokio::test]
async fn a_reply_later_than_the_timeout_is_unknown() {
    let server = RedisServer::start();
    let proxy = Proxy::before(server.port()).await;
    let mut options = Options::default();
    options.timeout = Duration::from_secs(1);
    let client = Bare::connect(&proxy.url(), &options).await.unwrap();
    let held = proxy.hold_replies();
    let owner = client.owner();
    let failure = client.step("orders", owner, take(true)).await.unwrap_err();
    assert_failure(&failure, Applied::Unknown, Code::Unavailable);
    drop(held);
    let left = client.ask("orders", owner, Action::Leave { tombstone: Some(2 * TTL) }).await;
    assert_eq!(left, Outcome::Freed);
}

#[tokio::test]
async fn a_take_that_arrives_after_its_undo_is_refused() {
    let server = RedisServer::start();
    let proxy = Proxy::before(server.port()).await;
    let mut options = Options::default();
    options.timeout = Duration::from_secs(1);
    let client = Bare::connect(&proxy.url(), &options).await.unwrap();
    let mut admin = server.admin();
    let held = proxy.hold_requests();
    let owner = client.owner();
    let failure = client.step("orders", owner, take(true)).await.unwrap_err();
    assert_failure(&failure, Applied::Unknown, Code::Unavailable);
    let left = client.ask("orders", owner, Action::Leave { tombstone: Some(2 * TTL) }).await;
    assert_eq!(left, Outcome::Gone);
    let mut calls = || {
        let info: String = redis::cmd("INFO").arg("commandstats").query(&mut admin).unwrap();
        let line = info.lines().find(|line| line.starts_with("cmdstat_evalsha:")).unwrap();
        line.split(&['=', ','][..]).nth(1).unwrap().parse::<u64>().unwrap()
    };
    let before = calls();
    drop(held);
    until("the late Take arrives", || calls() > before).await;
    let Outcome::State(state) = client.ask("orders", owner, Action::Read).await else { panic!() };
    assert_eq!((state.holders, state.waiters), (vec![], vec![]));
    client.hold("orders").await;
}

#[tokio::test]
async fn a_frozen_server_times_out_and_comes_back() {
    let server = RedisServer::start();
    let mut options = Options::default();
    options.timeout = Duration::from_secs(1);
    let mut client = Bare::connect(&server.url(), &options).await.unwrap();
    server.stop();
    let failure = client.fail("orders", take(false)).await;
    server.cont();
    assert_failure(&failure, Applied::Unknown, Code::Unavailable);
    assert_eq!(client.hear().await, Notice::Gap);
    assert!(client.step("orders", client.owner(), Action::Read).await.is_ok());
}

#[tokio::test]
async fn a_restart_is_told_as_a_gap_and_pushes_go_on() {
    let mut server = RedisServer::start();
    let mut client = connect(&server.url()).await;
    client.hold("orders").await;
    server.kill_hard();
    // Nobody can be reached: refused, and no faster than the pauses between attempts.
    let (began, mut refused) = (Instant::now(), 0);
    while began.elapsed() < Duration::from_millis(300) {
        let failure = client.fail("orders", take(true)).await;
        assert_eq!(failure.error.code(), Code::Unavailable, "{failure:?}");
        refused += 1;
    }
    assert!(refused <= 32, "{refused} attempts in 0.3 s");
    server.restart();
    assert_eq!(client.hear().await, Notice::Gap);
    let owner = client.hold("orders").await;
    let waiter = client.queue("orders").await;
    assert_eq!(client.ask("orders", owner, Action::Free { open: false }).await, Outcome::Freed);
    assert!(matches!(client.hear().await, Notice::Granted { owner, .. } if owner == waiter));
}

#[tokio::test]
async fn a_killed_idle_connection_is_made_again_without_a_step() {
    let server = RedisServer::start();
    let (mut client, mut admin) = (connect(&server.url()).await, server.admin());
    let killed: i64 =
        redis::cmd("CLIENT").arg(&["KILL", "TYPE", "pubsub"]).query(&mut admin).unwrap();
    assert_eq!(killed, 1);
    assert_eq!(client.hear().await, Notice::Gap);
    let channels: Vec<String> = redis::cmd("PUBSUB").arg("CHANNELS").query(&mut admin).unwrap();
    assert_eq!(channels.len(), 1);
}

#[tokio::test]
async fn a_closed_store_answers_closed_and_leaves_the_server() {
    let server = RedisServer::start();
    let (client, mut admin) = (connect(&server.url()).await, server.admin());
    client.store.close().await;
    let failure = client.fail("orders", take(true)).await;
    assert_failure(&failure, Applied::No, Code::Closed);
    assert_eq!(client.store.names("").await.unwrap_err().code(), Code::Closed);
    until("the connection ends", || {
        let channels: Vec<String> = redis::cmd("PUBSUB").arg("CHANNELS").query(&mut admin).unwrap();
        channels.is_empty()
    })
    .await;
}
