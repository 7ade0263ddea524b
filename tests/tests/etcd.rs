//! Locks on a real etcd, as programs use them; beside `etcdctl lock` too.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use fencelock::port::Mode;
use fencelock::{Client, Code, Error, Guard, Token};
use fencelock_tests::etcd::EtcdServer;
use futures_util::future::join_all;
use rustix::process::{Pid, Signal, kill_process};

/// A session of these clients.
const TTL: Duration = Duration::from_secs(2);
const PATIENCE: Duration = Duration::from_secs(20);

async fn client(server: &EtcdServer, prefix: &str) -> Client {
    let url = format!("{}?ttl=2s", server.url(prefix));
    fencelock::connect(&url).await.expect("it connects")
}

async fn clients(server: &EtcdServer, prefix: &str, count: usize) -> Vec<Client> {
    join_all((0..count).map(|_| client(server, prefix))).await
}

/// What lies behind a prefix, but for the sessions' own keys.
fn entries(server: &EtcdServer, prefix: &str) -> Vec<String> {
    let own = format!("{prefix}/!session!");
    server.keys(prefix).into_iter().filter(|key| !key.starts_with(&own)).collect()
}

/// Completes when so many wait for a lock.
async fn waiting(client: &Client, name: &str, count: usize) {
    let began = Instant::now();
    while client.lock(name).inspect().await.expect("it answers").waiters.len() != count {
        assert!(began.elapsed() < PATIENCE, "{count} should wait");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

fn code<T>(result: Result<T, Error>) -> Option<Code> {
    result.err().map(|error| error.code())
}

#[tokio::test]
async fn a_lock_excludes_and_its_tokens_rise() {
    let server = EtcdServer::start();
    let all = clients(&server, "p", 2).await;
    let (one, two) = (&all[0], &all[1]);
    let guard = one.lock("a/b").acquire().await.unwrap();
    assert!(two.lock("a/b").try_acquire().await.unwrap().is_none());
    // A name that begins like it is another lock.
    let part = two.lock("a").try_acquire().await.unwrap().expect("it is free");
    assert_eq!(two.names("").await.unwrap(), ["a", "a/b"]);
    let state = two.lock("a/b").inspect().await.unwrap();
    assert_eq!(state.holders[0].token, Some(guard.token()));
    let first = guard.token();
    guard.release().await.check().unwrap();
    let second = two.lock("a/b").acquire().await.unwrap();
    assert!(second.token() > first);
    drop((part, second));
    assert_eq!(code(one.lock("x").ttl(2 * TTL).acquire().await), Some(Code::Invalid));
    for client in &all {
        client.close().await;
    }
    assert_eq!(server.keys(""), [] as [&str; 0], "sessions end with their clients");
    assert_eq!(code(one.lock("a").acquire().await), Some(Code::Closed));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn read_write_locks_and_permits_keep_their_rules() {
    let server = EtcdServer::start();
    let all = clients(&server, "p", 3).await;
    let first = all[0].read("x").acquire().await.unwrap();
    let mut second = all[1].upgradeable("x").acquire().await.unwrap();
    assert!(all[2].write("x").try_acquire().await.unwrap().is_none());
    first.release().await.check().unwrap();
    let before = second.token();
    second.upgrade().await.unwrap();
    assert!(second.token() > before);
    assert!(all[2].read("x").try_acquire().await.unwrap().is_none());
    second.downgrade(Mode::Read).await.unwrap();
    let third = all[2].read("x").acquire_within(PATIENCE).await.unwrap();
    drop((second, third));
    let permits: Vec<Guard> = join_all(
        all[..2].iter().map(|client| async { client.permits("y", 2).acquire().await.unwrap() }),
    )
    .await;
    assert!(all[2].permits("y", 2).try_acquire().await.unwrap().is_none());
    drop(permits);
    drop(all[2].permits("y", 2).acquire_within(PATIENCE).await.unwrap());
}

/// Two requests for a lock that is free and given back; beside that only the session costs some.
#[tokio::test]
async fn a_pair_costs_two_requests() {
    const PAIRS: u64 = 200;
    let server = EtcdServer::start();
    let client = client(&server, "p").await;
    client.lock("x").acquire().await.unwrap().release().await.check().unwrap();
    let before = server.requests("Txn");
    let began = Instant::now();
    for _ in 0..PAIRS {
        client.lock("x").acquire().await.unwrap().release().await.check().unwrap();
    }
    println!("{:?} for a pair", began.elapsed() / PAIRS as u32);
    assert_eq!(server.requests("Txn") - before, 2 * PAIRS);
    assert_eq!(server.requests("Watch"), 0, "nobody waits");
}

/// Clients that wait are served in their order, each with a greater token, and one release wakes one of them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waiters_are_served_in_order() {
    const WAITERS: usize = 64;
    let server = EtcdServer::start();
    let all = clients(&server, "p", WAITERS + 1).await;
    let holder = all[0].lock("x").acquire().await.unwrap();
    let (served, mut waits) = (Arc::new(AtomicUsize::new(0)), Vec::new());
    for (number, client) in all[1..].iter().enumerate() {
        let (acquire, served) = (client.lock("x").acquire(), served.clone());
        waits.push(tokio::spawn(async move {
            let guard = acquire.await.unwrap();
            assert_eq!(served.fetch_add(1, Ordering::SeqCst), number);
            let token = guard.token();
            guard.release().await.check().unwrap();
            token
        }));
        waiting(&all[0], "x", number + 1).await;
    }
    let (began, before) = (Instant::now(), server.requests("Txn"));
    holder.release().await.check().unwrap();
    let mut last = Token::default();
    for wait in waits {
        let token = tokio::time::timeout(PATIENCE, wait).await.expect("it is served").unwrap();
        assert!(token > last);
        last = token;
    }
    let (took, requests) = (began.elapsed(), server.requests("Txn") - before);
    let rate = WAITERS as f64 / took.as_secs_f64();
    println!("{rate:.0} hand-overs a second, {requests} requests for {WAITERS}");
    // Each leaves, and looks twice a second.
    let looks = (2.0 * took.as_secs_f64() + 1.0) * WAITERS as f64;
    assert!(requests as f64 <= WAITERS as f64 + looks, "{requests}");
    assert_eq!(entries(&server, "p"), [] as [&str; 0]);
}

/// Two clients that take turns at one lock.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_clients_take_turns() {
    const TURNS: u32 = 200;
    let server = EtcdServer::start();
    let all = clients(&server, "p", 2).await;
    let (began, before) = (Instant::now(), server.requests("Txn"));
    join_all(all.iter().map(|client| async move {
        for _ in 0..TURNS {
            let guard = client.lock("x").acquire_within(PATIENCE).await.unwrap();
            guard.release().await.check().unwrap();
        }
    }))
    .await;
    let (took, turns) = (began.elapsed(), 2 * u64::from(TURNS));
    let requests = (server.requests("Txn") - before) as f64 / turns as f64;
    println!(
        "{:.0} turns a second, {requests:.2} requests each",
        turns as f64 / took.as_secs_f64()
    );
    // To join, to look once the watch is there, to leave; and a look a second.
    assert!(requests <= 3.1 + 2.0 * took.as_secs_f64() / turns as f64, "{requests}");
}

/// A client whose process is gone, with all its tasks.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_lock_of_a_dead_client_is_free_when_its_session_ends() {
    let server = EtcdServer::start();
    let (dying, waiter) = (client(&server, "p").await, client(&server, "p").await);
    drop(dying);
    let url = format!("{}?ttl=2s", server.url("p"));
    let dead = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let guard = runtime.block_on(async {
            let client = fencelock::connect(&url).await.unwrap();
            client.lock("x").acquire().await.unwrap()
        });
        drop(runtime);
        guard
    });
    let guard = dead.join().unwrap();
    let began = Instant::now();
    let next = waiter.lock("x").acquire_within(PATIENCE).await.unwrap();
    let took = began.elapsed();
    assert!(took <= TTL + Duration::from_millis(1500), "{took:?}");
    assert!(!guard.is_held() && next.token() > guard.token());
}

/// An acquire that is given up at any moment leaves nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_given_up_leaves_nothing() {
    let server = EtcdServer::start();
    let all = clients(&server, "p", 2).await;
    for held in [false, true] {
        let guard = if held { Some(all[0].lock("x").acquire().await.unwrap()) } else { None };
        for micros in (0..3000).step_by(100) {
            let acquire = all[1].lock("x").acquire();
            let _ = tokio::time::timeout(Duration::from_micros(micros), acquire).await;
        }
        if let Some(guard) = guard {
            guard.release().await.check().unwrap();
        }
        let began = Instant::now();
        while entries(&server, "p").iter().any(|key| key.starts_with("p/x/")) {
            assert!(began.elapsed() < PATIENCE, "{:?}", entries(&server, "p"));
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert_eq!(all[1].load(), (0, 0));
    }
}

/// `etcdctl lock`, which holds until it is told to end.
struct Foreign(Child);

impl Foreign {
    /// Completes when it holds the lock.
    fn lock(server: &EtcdServer, name: &str) -> (Self, std::sync::mpsc::Receiver<String>) {
        let mut command = server.ctl_command(&["lock", name]);
        let mut child = command.stdout(Stdio::piped()).spawn().expect("etcdctl can be run");
        let (sender, holds) = std::sync::mpsc::channel();
        let output = child.stdout.take().expect("it is piped");
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                let _ = sender.send(line);
            }
        });
        (Self(child), holds)
    }
}

impl Drop for Foreign {
    fn drop(&mut self) {
        let _ = kill_process(Pid::from_child(&self.0), Signal::TERM);
        let _ = self.0.wait();
    }
}

/// `etcdctl lock` and fencelock wait for each other.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn etcdctl_and_fencelock_exclude_each_other() {
    let server = EtcdServer::start();
    let ours = client(&server, "").await;
    let (foreign, holds) = Foreign::lock(&server, "orders/42");
    let key = holds.recv_timeout(PATIENCE).expect("etcdctl holds the free lock");
    assert!(key.starts_with("orders/42/"), "{key}");
    assert!(ours.lock("orders/42").try_acquire().await.unwrap().is_none());
    let next = tokio::spawn(ours.lock("orders/42").acquire_within(PATIENCE));
    waiting(&ours, "orders/42", 1).await;
    drop(foreign);
    let guard = next.await.unwrap().expect("it is served");
    let (_foreign, holds) = Foreign::lock(&server, "orders/42");
    let began = Instant::now();
    while ours.lock("orders/42").inspect().await.unwrap().waiters.len() != 1 {
        assert!(began.elapsed() < PATIENCE, "etcdctl should wait");
    }
    assert!(holds.try_recv().is_err(), "two hold");
    guard.release().await.check().unwrap();
    holds.recv_timeout(PATIENCE).expect("etcdctl is served");
    assert!(ours.lock("orders/42").try_acquire().await.unwrap().is_none());
}
