//! Faults on a real etcd: bad input, servers that are gone, frozen or restarted, answers that are lost, users, TLS.

use std::time::{Duration, Instant};

use fencelock::{Client, Code, Error, EventKind, Released};
use fencelock_tests::etcd::{EtcdServer, url};
use fencelock_tests::proxy::Proxy;
use fencelock_tests::session_store::{PATIENCE, a_server_that_hangs_keeps_no_guard_alive, waiting};
use fencelock_tests::turns::median;
use tokio::runtime::Handle;

async fn connect(url: impl AsRef<str>) -> Result<Client, Error> {
    fencelock::connect(url.as_ref()).await
}

fn shown(error: &Error) -> String {
    format!("{error} {error:?} {error:#?}")
}

/// A proxy before the server, and the URL of the locks behind it.
async fn behind(server: &EtcdServer) -> (Proxy, String) {
    let proxy = Proxy::before(server.port()).await;
    let port = proxy.url().port().expect("a proxy has a port");
    (proxy, format!("{}?ttl=5s&timeout=900ms", url(port, "p")))
}

#[tokio::test]
async fn bad_input_and_absent_servers_are_told() {
    let server = EtcdServer::start_with(&["--election-timeout", "1000"]);
    for (query, argument) in [("ttl=1500ms", "ttl"), ("ttl=1s", "ttl"), ("cacert=x", "cacert")] {
        let error = connect(format!("{}?{query}", server.url(""))).await.unwrap_err();
        assert_eq!(error.code(), Code::Invalid, "{error}");
        assert_eq!(error.fields()["argument"], argument, "{error}");
    }
    assert_eq!(server.keys(""), [] as [&str; 0], "nothing is left of what was refused");
    let error = connect("etcd://me:hunter2@127.0.0.1:1,127.0.0.1:2").await.unwrap_err();
    assert_eq!(error.code(), Code::Unavailable);
    assert!(!shown(&error).contains("hunter2"), "{error:?}");
    let error = connect("etcd://me:hunter2@").await.unwrap_err();
    assert_eq!(error.code(), Code::Invalid);
    assert!(!shown(&error).contains("hunter2"), "{error:?}");
}

/// A server that was killed and started again with its data keeps what was held.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restart_keeps_the_locks() {
    let mut server = EtcdServer::start();
    let url = format!("{}?ttl=10s", server.url("p"));
    let (one, two) = (connect(&url).await.unwrap(), connect(&url).await.unwrap());
    let guard = one.lock("x").acquire().await.unwrap();
    let waits = tokio::spawn(two.lock("x").acquire_within(PATIENCE));
    waiting(&one, "x", 1).await;
    server.kill_hard();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let tried = one.lock("y").try_acquire().await;
    assert_eq!(tried.unwrap_err().code(), Code::Unavailable);
    server.start_again();
    guard.extend(Duration::from_secs(10)).await.unwrap();
    let token = guard.token();
    guard.release().await.check().unwrap();
    let next = waits.await.unwrap().expect("it goes on waiting");
    assert!(next.token() > token);
    next.release().await.check().unwrap();
    // What was tried while nobody answered has left nothing.
    drop(one.lock("y").acquire_within(Duration::from_secs(2)).await.unwrap());
}

/// B77: the server knows the session of a holder that is gone also after a restart.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b77_a_restart_does_not_keep_the_lock_of_a_holder_that_is_gone() {
    let mut server = EtcdServer::start();
    let (proxy, url) = behind(&server).await;
    let (one, two) = (connect(&url).await.unwrap(), connect(server.url("p")).await.unwrap());
    let guard = one.lock("x").acquire().await.unwrap();
    drop(proxy);
    server.kill_hard();
    server.start_again();
    // The lease is 5 s long, and as long again for a server that has become the leader.
    let next = two.lock("x").acquire_within(Duration::from_secs(11)).await.unwrap();
    assert!(!guard.is_held(), "two hold");
    assert!(next.token() > guard.token());
}

/// B64: a listener that blocks its thread holds up neither heartbeats nor other locks. That thread is none of the runtime's: a task that
/// such a one has just woken is run by nobody else.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b64_a_listener_that_blocks_holds_up_nobody() {
    let server = EtcdServer::start();
    let client = Client::builder().option("ttl", "4s").on_event(|event| {
        if event.kind == EventKind::Granted && &*event.name == "slow" {
            std::thread::sleep(Duration::from_secs(6));
        }
    });
    let client = client.connect(server.url("p").as_str()).await.unwrap();
    let held = client.lock("held").acquire().await.unwrap();
    let slow = tokio::task::spawn_blocking({
        let (runtime, slow) = (Handle::current(), client.lock("slow"));
        move || runtime.block_on(slow.acquire())
    });
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(5) {
        let other = client.lock("other").acquire_within(Duration::from_secs(3)).await.unwrap();
        other.release().await.check().unwrap();
    }
    assert!(!slow.is_finished(), "the listener blocks");
    assert!(held.is_held(), "it is kept meanwhile");
    slow.await.unwrap().unwrap().release().await.check().unwrap();
}

/// B76: `a`, `ab` and `a/b` are three locks, and who has lost a try asks again in the same session.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b76_names_that_begin_alike_are_different_locks() {
    let server = EtcdServer::start();
    let (one, two) =
        (connect(server.url("p")).await.unwrap(), connect(server.url("p")).await.unwrap());
    let guard = one.lock("a").acquire().await.unwrap();
    for name in ["ab", "a/b", "a/", "A"] {
        let other = two.lock(name).try_acquire().await.unwrap();
        assert!(other.is_some(), "{name:?} is another lock");
    }
    assert!(two.lock("a").try_acquire().await.unwrap().is_none());
    let waits = two.lock("a").acquire_within(Duration::from_millis(100)).await;
    assert_eq!(waits.unwrap_err().code(), Code::Timeout);
    guard.release().await.check().unwrap();
    // The entry of the wait that ended is removed after it was told, so a try might still meet it.
    let waits = two.lock("a").acquire_within(PATIENCE).await;
    assert!(waits.is_ok(), "nothing of the same session stays before it: {waits:?}");
}

/// An acquire whose answer is lost fails; what it has made is removed, though the session lives on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b61_what_was_not_answered_is_taken_back() {
    let server = EtcdServer::start();
    let (proxy, url) = behind(&server).await;
    let (one, two) = (connect(&url).await.unwrap(), connect(server.url("p")).await.unwrap());
    let kept = one.lock("kept").acquire().await.unwrap();
    let held = proxy.hold_replies();
    let asked = one.lock("x").acquire_within(Duration::from_millis(300)).await;
    assert_eq!(asked.unwrap_err().code(), Code::Timeout);
    drop(held);
    let guard = two.lock("x").acquire_within(Duration::from_secs(5)).await.unwrap();
    assert!(kept.is_held(), "the session is the same");
    let entries = server.keys("p/x/");
    assert_eq!(entries.len(), 1, "{entries:?}");
    drop(guard);
    let cut = proxy.hold_replies();
    let released = kept.release().await;
    assert_eq!(released, Released::Unconfirmed);
    drop(cut);
    drop(two.lock("kept").acquire_within(Duration::from_secs(5)).await.unwrap());
}

/// A request that stays on the way and arrives after it was given up makes no entry.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_join_that_arrives_late_makes_no_entry() {
    let server = EtcdServer::start();
    let (proxy, url) = behind(&server).await;
    let one = connect(&url).await.unwrap();
    one.lock("x").acquire().await.unwrap().release().await.check().unwrap();
    let held = proxy.hold_requests();
    let asked = one.lock("x").acquire_within(Duration::from_millis(300)).await;
    assert_eq!(asked.unwrap_err().code(), Code::Timeout);
    // It is taken back over another connection first.
    let began = Instant::now();
    while server.keys("p/!left!").is_empty() {
        assert!(began.elapsed() < PATIENCE, "nothing refuses it");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    drop(held);
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(server.keys("p/x/"), [] as [&str; 0]);
}

/// The next member is asked when one is gone, or does not answer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_member_is_asked_within_a_second() {
    let server = EtcdServer::start();
    let proxy = Proxy::before(server.port()).await;
    let (port, silent) = (server.port(), proxy.url().port().unwrap());
    let url = format!("etcd://127.0.0.1:1,127.0.0.1:{silent},127.0.0.1:{port}/p?ttl=5s");
    let client = connect(&url).await.unwrap();
    let guard = client.lock("x").acquire().await.unwrap();
    let waiter = connect(server.url("p")).await.unwrap();
    let _held = proxy.hold_replies();
    let began = Instant::now();
    let other = loop {
        match client.lock("y").try_acquire().await {
            Ok(Some(other)) => break other,
            // What was not answered is still being taken back.
            Ok(None) => {}
            Err(error) => assert_eq!(error.code(), Code::Unavailable),
        }
    };
    let took = began.elapsed();
    assert!(took < Duration::from_secs(2), "{took:?}");
    tokio::time::sleep(Duration::from_secs(6)).await;
    assert!(guard.is_held() && other.is_held(), "heartbeats go on");
    assert!(waiter.lock("x").try_acquire().await.unwrap().is_none());
}

/// A server that stands still: its clients lose their locks in time, and go on when it does.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b75_a_server_that_hangs_keeps_no_guard_alive() {
    a_server_that_hangs_keeps_no_guard_alive(&EtcdServer::start()).await;
}

/// U08: a lease that the server or somebody revoked ends what hangs on it, long before the next heartbeat; the client goes on with
/// another one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn u08_a_revoked_lease_is_told_at_once() {
    let server = EtcdServer::start();
    let client = connect(format!("{}?ttl=60s", server.url("p"))).await.unwrap();
    let guard = client.lock("x").acquire().await.unwrap();
    let session = server.keys("p/!session!");
    let lease = session[0].rsplit('!').next().expect("it is in the key");
    server.ctl(&["lease", "revoke", lease]);
    assert_eq!(server.keys("p/"), [] as [&str; 0], "its keys end with it");
    let told = tokio::time::timeout(Duration::from_secs(2), guard.lost()).await;
    told.expect("it is told at once");
    drop(client.lock("x").acquire_within(PATIENCE).await.unwrap());
}

/// The store forgets its past while somebody waits.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_compaction_takes_no_watch_away() {
    let server = EtcdServer::start();
    let url = server.url("p").to_string();
    let (one, two) = (connect(&url).await.unwrap(), connect(&url).await.unwrap());
    let mut took = Vec::new();
    for _ in 0..5 {
        let guard = one.lock("x").acquire_within(PATIENCE).await.unwrap();
        let waits = tokio::spawn(two.lock("x").acquire_within(PATIENCE));
        waiting(&one, "x", 1).await;
        // A waiter that is not told looks by itself after a second. Starting more programs than these would take too long.
        let told = server.ctl(&["put", "other", "1", "--write-out", "json"]);
        let revision = told.split("\"revision\":").nth(1).and_then(|rest| rest.split(',').next());
        server.ctl(&["compact", revision.expect("it tells the revision")]);
        let began = Instant::now();
        guard.release().await.check().unwrap();
        let next = waits.await.unwrap().expect("it is served");
        took.push(began.elapsed());
        next.release().await.check().unwrap();
    }
    let took = median(took);
    assert!(took < Duration::from_millis(400), "it was told by no watch, {took:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn users_and_their_rights() {
    let mut server = EtcdServer::start_with_rights();
    let port = server.port();
    let login =
        |user: &str, prefix: &str| format!("etcd://{user}127.0.0.1:{port}/{prefix}?ttl=10s");
    for (user, prefix) in [("", "p"), ("clerk:hunter3@", "p"), ("clerk:hunter2@", "other")] {
        let error = connect(login(user, prefix)).await.unwrap_err();
        assert_eq!(error.code(), Code::Auth, "{error}");
        assert!(!shown(&error).contains("hunter"), "{error:?}");
    }
    let url = format!("{}?ttl=10s", server.url_with_rights());
    let (one, two) = (connect(&url).await.unwrap(), connect(&url).await.unwrap());
    let guard = one.lock("x").acquire().await.unwrap();
    let waits = tokio::spawn(two.lock("x").acquire_within(PATIENCE));
    waiting(&one, "x", 1).await;
    // It forgets the tokens it has given.
    server.kill_hard();
    server.start_again();
    guard.release().await.check().unwrap();
    let guard = waits.await.unwrap().expect("it is served");
    assert_eq!(one.names("").await.unwrap(), ["x"]);
    guard.release().await.check().unwrap();
    let open = EtcdServer::start();
    let error =
        connect(open.url("p").to_string().replace("//", "//me:hunter2@")).await.unwrap_err();
    assert_eq!(error.code(), Code::Auth, "{error}");
    assert!(!shown(&error).contains("hunter"), "{error:?}");
}
