//! What went wrong in other lock libraries, on a real server, where a case cannot count or cannot meddle enough. The
//! numbers at the beginning of the names are those of `tests/scenarios.yaml`.

use std::time::{Duration, Instant};

use fencelock::driver::redis::RedisStore;
use fencelock::options::Options;
use fencelock::port::{Action, LockKey, Outcome};
use fencelock::{Client, Guard};
use fencelock_tests::bare::{Bare, TTL, take};
use fencelock_tests::servers::{RedisServer, commands};
use futures_util::StreamExt;
use futures_util::future::join_all;
use futures_util::stream::iter;

async fn clients(server: &RedisServer, count: usize) -> Vec<Client> {
    let one = || async { fencelock::connect(server.url().as_str()).await.expect("it connects") };
    join_all((0..count).map(|_| one())).await
}

fn scripts(admin: &mut redis::Connection) -> u64 {
    let counts = commands(admin);
    ["evalsha", "eval"].iter().filter_map(|name| counts.get(*name)).sum()
}

fn reset(admin: &mut redis::Connection) {
    let () = redis::cmd("CONFIG").arg("RESETSTAT").exec(admin).unwrap();
}

/// A ticket that vanished, or ended, while it is still in the queue is passed over by whoever looks, whatever for.
#[tokio::test]
async fn b21_tickets_that_are_gone_hinder_no_script() {
    let server = RedisServer::start();
    let mut admin = server.admin();
    let client = Bare::connect(&server.url(), &Options::default()).await.unwrap();
    let free = Action::Free { open: false };
    let leave = Action::Leave { tombstone: Some(TTL) };
    let (refresh, renew) = (Action::Refresh { ttl: TTL }, Action::Renew { ttl: TTL });
    let looks = [take(false), take(true), refresh, renew, free.clone(), leave, Action::Read];
    for (number, look) in looks.into_iter().enumerate() {
        let lock = format!("orders:{number}");
        let holder = client.hold(&lock).await;
        let (gone, waiter) = (client.queue(&lock).await, client.queue(&lock).await);
        let record = RedisStore::record_key(&LockKey::new(&*lock));
        let field = format!("w{gone}");
        let dropped: u64 =
            redis::cmd("HDEL").arg(&record).arg(field).query(&mut admin).expect("it is a hash");
        assert_eq!(dropped, 1, "this is where a ticket lies");
        let owner = match look {
            Action::Take(_) => client.owner(),
            Action::Refresh { .. } | Action::Read => waiter,
            Action::Leave { .. } => gone,
            _ => holder,
        };
        let seen = client.ask(&lock, owner, look.clone()).await;
        client.ask(&lock, holder, free.clone()).await;
        let next = client.ask(&lock, waiter, Action::Refresh { ttl: TTL }).await;
        assert!(matches!(next, Outcome::Granted { .. }), "{look:?}: {seen:?}, then {next:?}");
    }
}

/// A whole fleet's leases in one process outlive their length, three renewals each, by few scripts.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b27_the_leases_of_a_fleet_are_renewed() {
    // In full as long as it takes, on a machine that has other things to do.
    let full = std::env::var_os("FENCELOCK_FULL").is_some();
    let (leases, seconds) = if full { (100_000, 30) } else { (10_000, 9) };
    let ttl = Duration::from_secs(seconds);
    let server = RedisServer::start();
    let mut admin = server.admin();
    let client = clients(&server, 1).await.remove(0);
    let acquire = |number| {
        let lock = client.lock(&format!("lease:{number}")).ttl(ttl);
        async move { lock.acquire().await.expect("it is free") }
    };
    let guards: Vec<Guard> = iter((0..leases).map(acquire)).buffer_unordered(64).collect().await;
    reset(&mut admin);
    tokio::time::sleep(ttl).await;
    let lost = guards.iter().filter(|guard| !guard.is_held()).count();
    assert_eq!(lost, 0, "of {leases} leases");
    // Three periods, 500 locks a script; and a period more, since they did not all begin together.
    let count = scripts(&mut admin);
    assert!(count <= 4 * (leases / 500 + 30), "{count} scripts");
    let keys: u64 = redis::cmd("DBSIZE").query(&mut admin).unwrap();
    assert!(keys >= 2 * leases, "{keys} keys");
    client.close().await;
    assert!(guards.iter().all(|guard| !guard.is_held()));
}

/// A waiter costs one script a second, and none in between.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b44_waiters_do_not_spin() {
    const WAITERS: u64 = 50;
    let server = RedisServer::start();
    let mut admin = server.admin();
    let clients = clients(&server, WAITERS as usize + 1).await;
    let (holder, waiters) = clients.split_first().unwrap();
    let guard = holder.lock("orders").acquire().await.unwrap();
    let waits: Vec<_> =
        waiters.iter().map(|one| tokio::spawn(one.lock("orders").acquire())).collect();
    settled(holder, WAITERS as usize).await;
    reset(&mut admin);
    let began = Instant::now();
    tokio::time::sleep(Duration::from_secs(3)).await;
    let count = scripts(&mut admin);
    // A look in every second that really passed, and one on either side.
    let seconds = began.elapsed().as_secs();
    let looks = (seconds - 1) * WAITERS..=(seconds + 1) * WAITERS;
    assert!(looks.contains(&count), "{count} scripts in {seconds} s");
    guard.release().await.check().expect("it held all the time");
    for wait in join_all(waits.into_iter().map(serve)).await {
        wait.expect("everybody has their turn");
    }
}

/// After the store lost everything, waiters come back by a step or two each, and rest again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b46_waiters_do_not_spin_when_everything_was_lost() {
    const WAITERS: u64 = 100;
    let server = RedisServer::start();
    let mut admin = server.admin();
    let clients = clients(&server, WAITERS as usize + 1).await;
    let (holder, waiters) = clients.split_first().unwrap();
    let guard = holder.lock("orders").acquire().await.unwrap();
    let waits: Vec<_> =
        waiters.iter().map(|one| tokio::spawn(one.lock("orders").acquire())).collect();
    settled(holder, WAITERS as usize).await;
    reset(&mut admin);
    let began = Instant::now();
    let () = redis::cmd("FLUSHALL").exec(&mut admin).unwrap();
    tokio::time::sleep(Duration::from_secs(3)).await;
    let count = scripts(&mut admin);
    // A refresh in every second and one more, one that finds the ticket gone, one new ticket.
    let most = (began.elapsed().as_secs() + 3) * WAITERS;
    assert!(count <= most, "{count} scripts instead of {most}");
    drop(guard);
    for wait in join_all(waits.into_iter().map(serve)).await {
        wait.expect("everybody has their turn");
    }
}

/// Waits for the grant and gives it back.
async fn serve(wait: tokio::task::JoinHandle<fencelock::Result<Guard>>) -> fencelock::Result<()> {
    wait.await.expect("a waiter does not panic")?.release().await.check()
}

/// Returns when so many wait.
async fn settled(client: &Client, waiters: usize) {
    let all = async {
        while client.lock("orders").inspect().await.expect("it answers").waiters.len() < waiters {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(fencelock_tests::bare::PATIENCE, all).await.expect("they all wait");
}

/// Everything an older attempt sent may still arrive after the next attempt was granted.
#[tokio::test]
async fn b58_late_packets_of_an_older_attempt_change_nothing() {
    let server = RedisServer::start();
    let client = Bare::connect(&server.url(), &Options::default()).await.unwrap();
    let free = Action::Free { open: false };
    let leave = Action::Leave { tombstone: Some(TTL) };
    let (refresh, renew) = (Action::Refresh { ttl: TTL }, Action::Renew { ttl: TTL });
    let older = client.hold("orders").await;
    // Its answer was lost, say, so it was undone; and the same client asked again.
    assert_eq!(client.ask("orders", older, leave.clone()).await, Outcome::Freed);
    let buried = client.owner();
    assert_eq!(client.ask("orders", buried, leave.clone()).await, Outcome::Gone);
    let newer = client.hold("orders").await;
    for owner in [older, buried] {
        for late in [free.clone(), renew.clone(), refresh.clone(), leave.clone()] {
            assert_eq!(client.ask("orders", owner, late).await, Outcome::Gone);
        }
        // Its own Take, doubled or delayed.
        assert_eq!(client.ask("orders", owner, take(true)).await, Outcome::Gone);
    }
    let still = client.ask("orders", newer, renew).await;
    assert!(matches!(still, Outcome::Granted { .. }), "{still:?}");
    assert_eq!(client.ask("orders", newer, free).await, Outcome::Freed);
}
