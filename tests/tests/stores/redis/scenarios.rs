//! Faults of other lock libraries, on a real server, where a case cannot count or cannot meddle enough. The
//! numbers at the beginning of the names are those of `tests/scenarios.yaml`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use fencelock::driver::redis::RedisStore;
use fencelock::options::Options;
use fencelock::port::limits::{GRANT_TTL, UNREACHABLE_AFTER};
use fencelock::port::{Action, LockKey, Outcome};
use fencelock::{Client, Event, EventKind, Guard, Released, Stats};
use fencelock_peers::Program;
use fencelock_tests::bare::{Bare, TTL, take};
use fencelock_tests::servers::{RedisServer, commands, held};
use fencelock_tests::shop::{self, LOCK};
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

/// A thousand waiters of one client, which has one connection, wait for as many locks. (The case of this number has half as
/// many, for those to whom each is a request over HTTP.)
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b17_a_thousand_waiters_share_a_connection() {
    const WAITERS: usize = 1000;
    let server = RedisServer::start();
    let all = clients(&server, 2).await;
    let (holder, waiter) = (&all[0], &all[1]);
    let acquire = async |number| holder.lock(&format!("x{number}")).acquire().await.unwrap();
    let guards: Vec<Guard> = iter((0..WAITERS).map(acquire)).buffer_unordered(64).collect().await;
    let waits: Vec<_> = (0..WAITERS)
        .map(|number| tokio::spawn(waiter.lock(&format!("x{number}")).acquire()))
        .collect();
    for number in 0..WAITERS {
        settled(holder, &format!("x{number}"), 1).await;
    }
    for guard in guards {
        guard.release().await.check().unwrap();
    }
    for wait in join_all(waits.into_iter().map(serve)).await {
        wait.expect("everybody has their turn");
    }
    assert_eq!([holder.stats(), waiter.stats()], [Stats::default(); 2]);
}

/// The key of a lock that is held vanishes: that is told once, and nobody renews it any more.
#[tokio::test]
async fn b03_a_key_that_is_gone_is_renewed_no_more() {
    let server = RedisServer::start();
    let mut admin = server.admin();
    let told = Arc::new(AtomicU64::new(0));
    let count = told.clone();
    let observer = move |event: &Event| {
        count.fetch_add(u64::from(event.kind == EventKind::Lost), Ordering::Relaxed);
    };
    let client = Client::builder().on_event(observer).connect(server.url().as_str()).await.unwrap();
    let ttl = Duration::from_secs(1);
    let guard = client.lock("orders").ttl(ttl).acquire().await.unwrap();
    let () = redis::cmd("DEL").arg(held("orders")).exec(&mut admin).unwrap();
    tokio::time::timeout(fencelock_tests::bare::PATIENCE, guard.lost()).await.expect("it is told");
    reset(&mut admin);
    tokio::time::sleep(3 * ttl).await;
    assert_eq!((scripts(&mut admin), told.load(Ordering::Relaxed)), (0, 1), "scripts, losses");
    assert_eq!(guard.release().await, Released::AlreadyLost);
}

/// A ticket that vanished while it is still in the queue is passed over by whoever looks, whatever for.
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
    let (leases, seconds) = if fencelock_tests::in_full() { (100_000, 30) } else { (10_000, 18) };
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
    let waits = queued(holder, waiters, "orders").await;
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

/// A waiter that is killed at the head of the queue delays those behind it by the grant it gets at most, and nobody spins
/// meanwhile.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_waiter_delays_the_queue_by_its_grant_and_nobody_spins() {
    const WAITERS: u64 = 20;
    let server = RedisServer::start();
    let mut admin = server.admin();
    let clients = clients(&server, WAITERS as usize + 1).await;
    let (holder, waiters) = clients.split_first().unwrap();
    for heard_of_lately in [true, false] {
        let guard = holder.lock(LOCK).acquire().await.unwrap();
        let actor = Program::new(env!("CARGO_BIN_EXE_actor"));
        let dead = shop::start(&actor, server.url().as_str()).await;
        let asked = dead.clone();
        let lost = tokio::spawn(async move { shop::acquire(&asked, 4 * GRANT_TTL).await });
        settled(holder, LOCK, 1).await;
        let waits = queued(holder, waiters, LOCK).await;
        settled(holder, LOCK, WAITERS as usize + 1).await;
        tokio::task::block_in_place(|| dead.kill());
        assert!(lost.await.unwrap().is_none(), "the dead are answered nothing");
        if !heard_of_lately {
            // Then it is passed over at once.
            tokio::time::sleep(UNREACHABLE_AFTER + Duration::from_millis(500)).await;
        }
        reset(&mut admin);
        let (freed, most) =
            (Instant::now(), if heard_of_lately { GRANT_TTL } else { Duration::ZERO });
        guard.release().await.check().expect("it held all the time");
        let mut served = iter(waits).map(serve).buffer_unordered(WAITERS as usize);
        served.next().await.expect("somebody waits").expect("it is served");
        let delay = freed.elapsed();
        let count = scripts(&mut admin);
        assert!(delay < most + Duration::from_secs(2), "the next one had to wait for {delay:?}");
        // A look in every second and one more, and what those did who were served by then.
        let looks = (delay.as_secs() + 2) * WAITERS + 2 * WAITERS;
        assert!(count <= looks, "{count} scripts in {delay:?}");
        while let Some(end) = served.next().await {
            end.expect("everybody has their turn");
        }
    }
}

/// After the store lost everything, waiters come back by a step or two each, and rest again; and so they do after it has cut
/// the connections by which they hear.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b46_waiters_do_not_spin_when_everything_was_lost() {
    const WAITERS: u64 = 100;
    let server = RedisServer::start();
    let mut admin = server.admin();
    let clients = clients(&server, WAITERS as usize + 1).await;
    let (holder, waiters) = clients.split_first().unwrap();
    let guard = holder.lock("orders").acquire().await.unwrap();
    let waits = queued(holder, waiters, "orders").await;
    reset(&mut admin);
    let began = Instant::now();
    let () = redis::cmd("FLUSHALL").exec(&mut admin).unwrap();
    tokio::time::sleep(Duration::from_secs(3)).await;
    let count = scripts(&mut admin);
    // A refresh in every second and one more, one that finds the ticket gone, one new ticket.
    let most = (began.elapsed().as_secs() + 3) * WAITERS;
    assert!(count <= most, "{count} scripts instead of {most}");
    reset(&mut admin);
    let began = Instant::now();
    let cut: u64 =
        redis::cmd("CLIENT").arg("KILL").arg("TYPE").arg("pubsub").query(&mut admin).unwrap();
    assert!(cut >= WAITERS, "{cut} connections heard");
    tokio::time::sleep(Duration::from_secs(3)).await;
    let count = scripts(&mut admin);
    // A refresh in every second and one more, and one because something may have been missed.
    let most = (began.elapsed().as_secs() + 2) * WAITERS;
    assert!(count <= most, "{count} scripts instead of {most} after the cut");
    drop(guard);
    for wait in join_all(waits.into_iter().map(serve)).await {
        wait.expect("everybody has their turn");
    }
}

/// An acquire under way.
type Waiting = tokio::task::JoinHandle<fencelock::Result<Guard>>;

/// Has each of these clients wait for the lock.
async fn queued(witness: &Client, waiters: &[Client], lock: &str) -> Vec<Waiting> {
    let waits = waiters.iter().map(|one| tokio::spawn(one.lock(lock).acquire())).collect();
    settled(witness, lock, waiters.len()).await;
    waits
}

/// Waits for the grant and gives it back.
async fn serve(wait: Waiting) -> fencelock::Result<()> {
    wait.await.expect("a waiter does not panic")?.release().await.check()
}

/// Returns when so many wait.
async fn settled(client: &Client, lock: &str, waiters: usize) {
    let all = async {
        while client.lock(lock).inspect().await.expect("it answers").waiters.len() < waiters {
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
    let cancelled = client.owner();
    assert_eq!(client.ask("orders", cancelled, leave.clone()).await, Outcome::Gone);
    let newer = client.hold("orders").await;
    for owner in [older, cancelled] {
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
