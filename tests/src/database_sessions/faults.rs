//! Faults of locks that live with a session of a database server, in both ways: holders that die or freeze, connections and servers that
//! end, networks that are silent.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use fencelock::{Code, Released};
use fencelock_peers::Program;
use serde_json::json;

use super::{DatabaseSessions, Way};
use crate::clerk::Post;
use crate::in_full;
use crate::protocol::Call;
use crate::proxy::Proxy;
use crate::session_store::{self, PATIENCE};
use crate::shop::{self, acquire, ask};

/// The sessions of those who freeze.
const TTL: Duration = Duration::from_secs(1);

/// The lock of a process that is killed is the next one's long before the lease would end.
pub async fn the_lock_of_a_killed_process_is_free_at_once<S: DatabaseSessions>(
    way: Way,
    actor: &Program,
) {
    let server = S::start(way);
    let url = server.at(server.port(), "");
    let client = server.client("").await;
    let rounds = if in_full() { 50 } else { 5 };
    let mut all = Vec::new();
    for _ in 0..rounds {
        let dying = shop::start(actor, &url).await;
        let lease = Duration::from_secs(20);
        let old = acquire(&dying, lease).await.unwrap();
        let waits = tokio::spawn(client.lock(shop::LOCK).acquire_within(PATIENCE));
        server.comes_to("1|1").await;
        let killed = Instant::now();
        tokio::task::block_in_place(|| dying.kill());
        let guard = waits.await.unwrap().unwrap();
        all.push(killed.elapsed());
        assert!(guard.token().get() > old.token);
        guard.release().await.check().unwrap();
    }
    all.sort();
    println!(
        "after a kill: {:?} in the middle, {:?} at most",
        all[all.len() / 2],
        all[all.len() - 1]
    );
    assert!(all[all.len() / 2] < Duration::from_secs(1), "{all:?}");
    // The same of one that waits.
    let guard = client.lock(shop::LOCK).acquire_within(PATIENCE).await.unwrap();
    let dying = shop::start(actor, &url).await;
    let waits = tokio::spawn({
        let dying = dying.clone();
        async move { acquire(&dying, Duration::from_secs(20)).await.map(|grant| grant.token) }
    });
    server.comes_to("1|1").await;
    tokio::task::block_in_place(|| dying.kill());
    let _ = waits.await;
    if server.sees_dead_waiters() {
        server.comes_to("1|0").await;
    }
    guard.release().await.check().unwrap();
    server.comes_to("0|0").await;
}

/// Holders are killed under load: what they guard stays exact.
pub async fn killed_holders<S: DatabaseSessions>(way: Way, actor: &Program) {
    let server = S::start(way);
    let url = server.at(server.port(), "");
    let kills = if in_full() { 100 } else { 10 };
    shop::kill_clerks(&url, &vec![Post::Actor(actor.clone()); 4], kills).await;
}

/// A process that stands still: the server ends its session, and it knows at its first look.
pub async fn a_frozen_holder_knows_at_its_first_look<S: DatabaseSessions>(
    way: Way,
    actor: &Program,
) {
    let server = S::start(way);
    let url = server.at(server.port(), "?ttl=1s");
    let rounds = if in_full() { 50 } else { 3 };
    for _ in 0..rounds {
        let (frozen, next) = (shop::start(actor, &url).await, shop::start(actor, &url).await);
        let old = acquire(&frozen, TTL).await.unwrap();
        let waiting = tokio::spawn({
            let next = next.clone();
            async move { acquire(&next, TTL).await.unwrap() }
        });
        server.comes_to("1|1").await;
        tokio::task::block_in_place(|| frozen.freeze(true));
        let stopped = Instant::now();
        let new = waiting.await.unwrap();
        assert!(stopped.elapsed() < TTL + shop::MACHINE, "{:?}", stopped.elapsed());
        assert!(new.token > old.token);
        frozen.freeze(false);
        let held = ask(&frozen, Call::IsHeld { guard: old.guard }).await.unwrap();
        assert_eq!(held, json!(false), "at the first look after the freeze");
        let release = ask(&frozen, Call::Release { guard: old.guard }).await.unwrap();
        assert_eq!(release, json!("already_lost"));
        assert_eq!(ask(&next, Call::IsHeld { guard: new.guard }).await.unwrap(), json!(true));
        let release = ask(&next, Call::Release { guard: new.guard }).await.unwrap();
        assert_eq!(release, json!("released"));
        tokio::task::block_in_place(|| (frozen.kill(), next.kill()));
        server.comes_to("0|0").await;
    }
}

/// B90, B93: a connection that is ended is told as a loss at once, and costs nothing that comes after it.
pub async fn b90_b93_an_ended_connection_is_a_loss_that_is_told<S: DatabaseSessions>(
    way: Way,
    _: &Program,
) {
    let server = S::start(way);
    let (one, two) = (server.client("").await, server.client("").await);
    let rounds = if in_full() { 100 } else { 10 };
    for round in 0..rounds {
        let guard = one.lock("x").acquire_within(PATIENCE).await.unwrap();
        let waits = tokio::spawn(two.lock("x").acquire_within(PATIENCE));
        server.comes_to("1|1").await;
        if round % 2 == 1 {
            // A place in the queue that is lost is taken again.
            server.end_connections(false);
            server.comes_to("1|1").await;
        }
        server.end_connections(true);
        tokio::time::timeout(PATIENCE, guard.lost()).await.expect("it is told");
        assert!(!guard.is_held());
        let next = waits.await.unwrap().unwrap();
        assert!(next.token() > guard.token());
        assert_eq!(guard.release().await, Released::AlreadyLost);
        assert!(next.is_held());
        next.release().await.check().unwrap();
    }
    server.comes_to("0|0").await;
}

/// Those who ask behind each other while their connection ends are told that nobody answered, not that their client was closed.
pub async fn those_behind_an_ended_connection_may_ask_again<S: DatabaseSessions>(
    way: Way,
    _: &Program,
) {
    let server = S::start(way);
    let client = server.client("?timeout=2s").await;
    let open = Arc::new(AtomicBool::new(true));
    let asks = (0..16).map(|number| {
        let (client, open) = (client.clone(), open.clone());
        tokio::spawn(async move {
            while open.load(Ordering::Acquire) {
                match client.lock(&format!("behind {number}")).try_acquire().await {
                    Ok(guard) => drop(guard),
                    Err(error) => assert_eq!(error.code(), Code::Unavailable, "{error}"),
                }
            }
        })
    });
    let asks: Vec<_> = asks.collect();
    for _ in 0..if in_full() { 100 } else { 20 } {
        tokio::time::sleep(Duration::from_millis(20)).await;
        server.end_all_connections();
    }
    open.store(false, Ordering::Release);
    for asked in asks {
        asked.await.expect("it is told what it may do");
    }
}

/// A server that is killed and started again has no locks; tokens go on.
pub async fn a_restart_ends_the_locks_and_not_the_tokens<S: DatabaseSessions>(
    way: Way,
    _: &Program,
) {
    let mut server = S::start(way);
    let (one, two) = (server.client("").await, server.client("").await);
    let rounds = if in_full() { 50 } else { 3 };
    for _ in 0..rounds {
        let guard = one.lock("x").acquire_within(PATIENCE).await.unwrap();
        let waits = tokio::spawn(two.lock("x").acquire_within(PATIENCE));
        server.comes_to("1|1").await;
        server.kill_hard();
        tokio::time::timeout(PATIENCE, guard.lost()).await.expect("it is told");
        let tried = one.lock("y").try_acquire().await;
        assert_eq!(tried.unwrap_err().code(), Code::Unavailable);
        server.start_again();
        let next = waits.await.unwrap().expect("it goes on waiting");
        assert!(next.token() > guard.token());
        next.release().await.check().unwrap();
    }
    drop(one.lock("y").acquire_within(PATIENCE).await.unwrap());
    server.comes_to("0|0").await;
}

/// A network that is silent: the holder loses the lock by its own clock, and the server gives it to the next one.
pub async fn a_silent_network_ends_the_session_on_both_sides<S: DatabaseSessions>(
    way: Way,
    _: &Program,
) {
    let server = S::start(way);
    let proxy = Proxy::before(server.port()).await;
    let port = proxy.url().port().expect("a proxy has a port");
    let behind = fencelock::connect(&server.at(port, "?ttl=2s&timeout=1s")).await.unwrap();
    let beside = server.client("?ttl=2s").await;
    let guard = behind.lock("x").acquire().await.unwrap();
    let waits = tokio::spawn(beside.lock("x").acquire_within(PATIENCE));
    server.comes_to("1|1").await;
    let (requests, replies) = (proxy.hold_requests(), proxy.hold_replies());
    let began = Instant::now();
    tokio::time::sleep(session_store::TTL).await;
    assert!(!guard.is_held(), "a lease after the last word of the server");
    tokio::time::timeout(PATIENCE, guard.lost()).await.expect("it is told");
    let next = waits.await.unwrap().unwrap();
    let within = session_store::TTL + shop::MACHINE + shop::NEXT_GRANT;
    assert!(began.elapsed() <= within, "{:?}", began.elapsed());
    assert!(next.token() > guard.token());
    assert_eq!(guard.release().await, Released::AlreadyLost);
    drop((requests, replies));
    assert!(next.is_held());
    next.release().await.check().unwrap();
    let again = behind.lock("x").acquire_within(PATIENCE).await.unwrap();
    again.release().await.check().unwrap();
    server.comes_to("0|0").await;
}

/// A request without an answer is undone, though the session lives on.
pub async fn what_was_not_answered_is_taken_back<S: DatabaseSessions>(way: Way, _: &Program) {
    let server = S::start(way);
    let proxy = Proxy::before(server.port()).await;
    let port = proxy.url().port().expect("a proxy has a port");
    let behind = fencelock::connect(&server.at(port, "?ttl=20s&timeout=500ms")).await.unwrap();
    let beside = server.client("").await;
    let kept = behind.lock("kept").acquire().await.unwrap();
    // The connection that is to wait for its answers is there.
    behind.lock("x").acquire().await.unwrap().release().await.check().unwrap();
    let held = proxy.hold_replies();
    let tried = behind.lock("x").try_acquire().await;
    assert_eq!(tried.unwrap_err().code(), Code::Unavailable);
    drop(held);
    let guard = beside.lock("x").acquire_within(PATIENCE).await.unwrap();
    guard.release().await.check().unwrap();
    assert!(kept.is_held());
    kept.release().await.check().unwrap();
    server.comes_to("0|0").await;
}

/// A server that stands still keeps no guard alive.
pub async fn a_server_that_hangs_keeps_no_guard_alive<S: DatabaseSessions>(way: Way, _: &Program) {
    session_store::a_server_that_hangs_keeps_no_guard_alive(&S::start(way)).await;
}
