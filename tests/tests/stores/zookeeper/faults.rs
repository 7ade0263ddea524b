//! Faults on a real ZooKeeper: bad input, servers that are gone, frozen or restarted, answers that are lost, sessions that end.

use std::time::{Duration, Instant};

use fencelock::{Client, Code, Error, Released};
use fencelock_tests::proxy::Proxy;
use fencelock_tests::session_store::{
    PATIENCE, a_server_that_hangs_keeps_no_guard_alive, nothing_is_left, waiting,
};
use fencelock_tests::turns::median;
use fencelock_tests::zookeeper::{ZookeeperServer, url};
use futures_util::future::join_all;

/// How long a session lives whose server is killed again and again.
const SESSION: Duration = Duration::from_secs(30);

async fn connect(url: impl AsRef<str>) -> Result<Client, Error> {
    fencelock::connect(url.as_ref()).await
}

/// A proxy before the server, and the URL of the locks behind it.
async fn behind(server: &ZookeeperServer, chroot: &str) -> (Proxy, String) {
    let proxy = Proxy::before(server.port()).await;
    let port = proxy.url().port().expect("a proxy has a port");
    (proxy, format!("{}?ttl=5s&timeout=1s", url(port, chroot)))
}

#[tokio::test]
async fn bad_input_and_absent_servers_are_told() {
    let server = ZookeeperServer::shared();
    // A server has a fifth of a session to answer, so one that is too short for it is not short for a slow machine.
    let of_long_sessions = ZookeeperServer::start_with("minSessionTimeout=20000\n");
    for (server, query, argument) in [
        (&of_long_sessions, "ttl=10s", "ttl"),
        (&*server, "ttl=10m", "ttl"),
        (&*server, "ttl=1000001us", "ttl"),
        (&*server, "cacert=x", "cacert"),
    ] {
        let error = connect(format!("{}?{query}", server.url("input"))).await.unwrap_err();
        assert_eq!(error.code(), Code::Invalid, "{error}");
        assert_eq!(error.fields()["argument"], argument, "{error}");
    }
    for (url, code) in [
        ("zookeeper://me:hunter2@127.0.0.1:1,127.0.0.1:2", Code::Unavailable),
        ("zookeeper://me:hunter2@", Code::Invalid),
        ("zookeeper://me:hunter2@127.0.0.1:1/a//b", Code::Invalid),
    ] {
        let error = connect(url).await.unwrap_err();
        assert_eq!(error.code(), code, "{error}");
        assert!(!format!("{error} {error:?} {error:#?}").contains("hunter2"), "{error:?}");
    }
}

/// A server that was killed and started again with its data keeps what was held, and goes on with its waiters.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b68_a_restart_keeps_the_locks_and_the_line() {
    let mut server = ZookeeperServer::start();
    let url = format!("{}?ttl={}s&timeout=2s", server.url("p"), SESSION.as_secs());
    let clients = join_all((0..6).map(|_| connect(&url))).await;
    let clients: Vec<_> = clients.into_iter().map(Result::unwrap).collect();
    let guard = clients[0].lock("x").acquire().await.unwrap();
    let rounds = if fencelock_tests::in_full() { 50 } else { 3 };
    let mut waits = Vec::new();
    for (number, client) in clients[1..].iter().enumerate() {
        waits.push(tokio::spawn(client.lock("x").acquire_within(rounds * PATIENCE)));
        waiting(&clients[0], "x", number + 1).await;
    }
    for _ in 0..rounds {
        server.kill_hard();
        let tried = clients[0].lock("y").try_acquire().await;
        assert_eq!(tried.unwrap_err().code(), Code::Unavailable);
        server.start_again();
        // A server that is there for moments only ends every session: each client reaches it once.
        let back = Instant::now();
        for client in &clients {
            while client.ping().await.is_err() {
                assert!(back.elapsed() < PATIENCE, "the server is back");
            }
        }
        while guard.remaining() < SESSION / 2 {
            assert!(back.elapsed() < PATIENCE && guard.is_held(), "the session goes on");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
    guard.extend(SESSION).await.unwrap();
    let mut token = guard.token();
    guard.release().await.check().unwrap();
    for wait in waits {
        let next = wait.await.unwrap().expect("it goes on waiting");
        assert!(next.token() > token);
        token = next.token();
        next.release().await.check().unwrap();
    }
    // What was tried while nobody answered has left nothing.
    drop(clients[0].lock("y").acquire_within(PATIENCE).await.unwrap());
}

/// An acquire whose answer is lost fails; what it has made is removed, though the session lives on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b61_what_was_not_answered_is_taken_back() {
    let server = ZookeeperServer::shared();
    let (proxy, url) = behind(&server, "b61").await;
    let (one, two) = (connect(&url).await.unwrap(), connect(server.url("b61")).await.unwrap());
    let kept = one.lock("kept").acquire().await.unwrap();
    let held = proxy.hold_replies();
    let asked = one.lock("x").acquire_within(Duration::from_millis(300)).await;
    assert_eq!(asked.unwrap_err().code(), Code::Timeout);
    drop(held);
    let guard = two.lock("x").acquire_within(PATIENCE).await.unwrap();
    assert!(kept.is_held(), "the session is the same");
    let entries = server.entries("/b61/x").await;
    assert_eq!(entries.len(), 1, "{entries:?}");
    drop(guard);
    let cut = proxy.hold_replies();
    // Over another connection it may be confirmed all the same.
    let released = kept.release().await;
    assert!(matches!(released, Released::Unconfirmed | Released::Released), "{released:?}");
    drop(cut);
    drop(two.lock("kept").acquire_within(PATIENCE).await.unwrap());
}

/// A try that fails while nothing is answered leaves no entry, before which others would wait once the session has recovered.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b67_a_try_while_the_session_is_in_doubt_leaves_no_entry() {
    let server = ZookeeperServer::shared();
    let (proxy, url) = behind(&server, "b67").await;
    let (one, two) = (connect(&url).await.unwrap(), connect(server.url("b67")).await.unwrap());
    let kept = one.lock("kept").acquire().await.unwrap();
    let guard = two.lock("x").acquire().await.unwrap();
    let held = proxy.hold_replies();
    let tried = one.lock("x").try_acquire().await;
    assert_eq!(tried.unwrap_err().code(), Code::Unavailable);
    drop(held);
    guard.release().await.check().unwrap();
    nothing_is_left(&*server, "b67").await;
    assert!(kept.is_held(), "the session is the same");
}

/// The connection is cut at each of the first bytes of an answer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b62_a_cut_at_any_byte_leaves_nothing() {
    let server = ZookeeperServer::shared();
    let (proxy, url) = behind(&server, "b62").await;
    let client = connect(&url).await.unwrap();
    client.lock("x").acquire().await.unwrap().release().await.check().unwrap();
    for bytes in (0..240).step_by(20) {
        proxy.cut_after(bytes);
        match client.lock("x").try_acquire().await {
            Ok(Some(guard)) => drop(guard.release().await),
            Ok(None) => {}
            Err(error) => assert_eq!(error.code(), Code::Unavailable, "{error}"),
        }
        nothing_is_left(&*server, "b62").await;
    }
    drop(client.lock("x").acquire_within(PATIENCE).await.unwrap());
}

/// A request that stays on the way and arrives after it was given up makes no entry.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_join_that_arrives_late_makes_no_entry() {
    let server = ZookeeperServer::shared();
    let (proxy, url) = behind(&server, "late").await;
    let one = connect(&url).await.unwrap();
    one.lock("x").acquire().await.unwrap().release().await.check().unwrap();
    let held = proxy.hold_requests();
    let asked = one.lock("x").acquire_within(Duration::from_millis(300)).await;
    assert_eq!(asked.unwrap_err().code(), Code::Timeout);
    // The session has gone over to another connection.
    one.lock("y").acquire_within(PATIENCE).await.unwrap().release().await.check().unwrap();
    drop(held);
    tokio::time::sleep(Duration::from_millis(300)).await;
    nothing_is_left(&*server, "late").await;
}

/// The next member is asked when one is gone, or does not answer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_goes_over_to_another_member() {
    let server = ZookeeperServer::shared();
    let proxy = Proxy::before(server.port()).await;
    let (port, silent) = (server.port(), proxy.url().port().unwrap());
    let hosts = format!("127.0.0.1:1,127.0.0.1:{silent},127.0.0.1:{port}");
    let client = connect(format!("zookeeper://{hosts}/members?ttl=5s")).await.unwrap();
    let guard = client.lock("x").acquire().await.unwrap();
    let waiter = connect(server.url("members")).await.unwrap();
    let _held = proxy.hold_replies();
    let other = client.lock("y").acquire_within(PATIENCE).await.unwrap();
    tokio::time::sleep(Duration::from_secs(6)).await;
    assert!(guard.is_held() && other.is_held(), "heartbeats go on");
    assert!(waiter.lock("x").try_acquire().await.unwrap().is_none());
}

/// A server that stands still: its clients lose their locks in time, and go on when it does.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b75_a_server_that_hangs_keeps_no_guard_alive() {
    a_server_that_hangs_keeps_no_guard_alive(&ZookeeperServer::start()).await;
}

/// A session that ends takes its entries along. Its holder is told, its waiter waits on with another session.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b65_an_ended_session_is_noticed() {
    let server = ZookeeperServer::shared();
    let url = format!("{}?ttl=10s", server.url("ended"));
    let (one, two) = (connect(&url).await.unwrap(), connect(&url).await.unwrap());
    let guard = one.lock("x").acquire().await.unwrap();
    let waits = tokio::spawn(two.lock("x").acquire_within(PATIENCE));
    waiting(&one, "x", 1).await;
    let admin = server.admin().await;
    let entries = server.entries("/ended/x").await;
    // First the one that waits, which would hold without the other.
    for number in ["0000000001", "0000000000"] {
        let path = entries.iter().find(|path| path.ends_with(number)).expect("it is there");
        let (_, stat) = admin.get_data(path).await.unwrap();
        server.expire(stat.ephemeral_owner);
    }
    let began = Instant::now();
    tokio::time::timeout(PATIENCE, guard.lost()).await.expect("it is told");
    let took = began.elapsed();
    assert!(took < Duration::from_secs(5), "it was told by its deadline only, {took:?}");
    let next = waits.await.unwrap().expect("it is served");
    assert!(next.token() > guard.token());
    next.release().await.check().unwrap();
    drop(one.lock("x").acquire_within(PATIENCE).await.unwrap());
}

/// An entry that somebody removes by hand is lost, and no one else's removal is taken for it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b71_an_entry_that_is_gone_is_not_waited_for() {
    let server = ZookeeperServer::shared();
    let url = format!("{}?ttl=10s", server.url("hand"));
    let (one, two) = (connect(&url).await.unwrap(), connect(&url).await.unwrap());
    let admin = server.admin().await;
    let mut took = Vec::new();
    for _ in 0..5 {
        let _guard = one.lock("x").acquire_within(PATIENCE).await.unwrap();
        let waits = tokio::spawn(two.lock("x").acquire_within(PATIENCE));
        waiting(&one, "x", 1).await;
        let entries = server.entries("/hand/x").await;
        let number =
            |path: &&String| path.rsplit_once("-lock-").map(|(_, number)| number.to_owned());
        let held = entries.iter().filter(|path| number(path).is_some()).min_by_key(number);
        admin.delete(held.expect("it is there"), None).await.unwrap();
        let began = Instant::now();
        let next = waits.await.unwrap().expect("it is served");
        took.push(began.elapsed());
        next.release().await.check().unwrap();
    }
    let took = median(took);
    assert!(took < Duration::from_millis(700), "it was told by no watch, {took:?}");
}
