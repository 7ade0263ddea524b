//! Locks on a real etcd, as programs use them; beside `etcdctl lock` too.

use std::io::{BufRead, BufReader, Read as _, Write};
use std::process::{Child, Stdio};
use std::time::Instant;

use fencelock::Guard;
use fencelock_tests::ended;
use fencelock_tests::etcd::EtcdServer;
use fencelock_tests::session_store::{self, PATIENCE, client, clients, waiting};
use futures_util::future::join_all;
use rustix::process::{Pid, Signal, kill_process};

#[tokio::test]
async fn a_lock_excludes_and_its_tokens_rise() {
    let server = EtcdServer::start();
    session_store::a_lock_excludes_and_its_tokens_rise(&server, "p").await;
    assert_eq!(server.keys(""), [] as [&str; 0], "sessions end with their clients");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn read_write_locks_and_permits_keep_their_rules() {
    let server = EtcdServer::start();
    session_store::read_write_locks_and_permits_keep_their_rules(&server, "p").await;
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
    assert_eq!(server.requests("Watch"), 1, "nobody waits: the session alone is watched");
}

/// Clients that wait are served in their order, each with a greater token, and one release wakes one of them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waiters_are_served_in_order() {
    const WAITERS: usize = 64;
    let (server, mut before) = (EtcdServer::start(), 0);
    let count = || before = server.requests("Txn");
    let took = session_store::waiters_are_served_in_order(&server, "p", WAITERS, count).await;
    let requests = server.requests("Txn") - before;
    let rate = WAITERS as f64 / took.as_secs_f64();
    println!("{rate:.0} hand-overs a second, {requests} requests for {WAITERS}");
    // Each leaves, and looks twice a second.
    let looks = (2.0 * took.as_secs_f64() + 1.0) * WAITERS as f64;
    assert!(requests as f64 <= WAITERS as f64 + looks, "{requests}");
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_lock_of_a_dead_client_is_free_when_its_session_ends() {
    let server = EtcdServer::start();
    session_store::the_lock_of_a_dead_client_is_free_when_its_session_ends(&server, "p").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_given_up_leaves_nothing() {
    let server = EtcdServer::start();
    session_store::what_is_given_up_leaves_nothing(&server, "p").await;
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
    waiting(&ours, "orders/42", 1).await;
    assert!(holds.try_recv().is_err(), "two hold");
    guard.release().await.check().unwrap();
    holds.recv_timeout(PATIENCE).expect("etcdctl is served");
    assert!(ours.lock("orders/42").try_acquire().await.unwrap().is_none());
}

/// The key of the entry of a hold that is alone, and its create revision, as the manual finds them.
fn entry(server: &EtcdServer, guard: &Guard) -> (String, u64) {
    let keys = server.keys(&format!("p/{}/", guard.name()));
    (keys.into_iter().next().expect("a hold has an entry"), guard.token().get() / 32)
}

/// Writes in a transaction that compares the entry. Whether it was carried out.
fn writes_under(server: &EtcdServer, (key, revision): &(String, u64)) -> bool {
    let text = format!("create(\"{key}\") = \"{revision}\"\n\nput stock 7\n\n\n");
    let mut command = server.ctl_command(&["txn"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().expect("etcdctl can be run");
    child.stdin.take().expect("it is piped").write_all(text.as_bytes()).unwrap();
    ended::status(&mut child);
    let mut told = String::new();
    child.stdout.take().expect("it is piped").read_to_string(&mut told).unwrap();
    told.contains("SUCCESS")
}

/// A transaction of the user's own that compares the entry is carried out while the hold stands, and refused afterwards.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transaction_of_the_users_own_compares_the_entry() {
    let server = EtcdServer::start();
    let all = clients(&server, "p", 2).await;
    let first = all[0].lock("x").acquire().await.unwrap();
    let old = entry(&server, &first);
    assert!(writes_under(&server, &old));
    first.release().await.check().unwrap();
    assert!(!writes_under(&server, &old), "the hold has ended");
    let second = all[1].lock("x").acquire().await.unwrap();
    assert!(!writes_under(&server, &old), "somebody else holds");
    assert!(writes_under(&server, &entry(&server, &second)));
    second.release().await.check().unwrap();
}
