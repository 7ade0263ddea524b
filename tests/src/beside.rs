//! Another library and fencelock on the same locks of a store with sessions: many turns of both, and the dead of either side.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use fencelock::{Client, Token};
use fencelock_peers::Program;

use crate::other_library::OtherLibrary;
use crate::session_store::{PATIENCE, TTL, waiting};
use crate::shop;

/// How many turns each of them has.
const TURNS: usize = 50;

/// Two programs of the other library and two clients take turns, and nobody is ever beside another one. `start` starts such a program;
/// `None`: the machine lacks its language. `writes`: every second turn of the other library's is that of a writer, beside readers of ours.
pub async fn turns_are_exclusive(
    url: &str,
    start: impl Fn() -> Option<OtherLibrary>,
    writes: bool,
) {
    let inside = Arc::new(AtomicUsize::new(0));
    let mut others = Vec::new();
    for _ in 0..2 {
        let Some(mut other) = start() else { return };
        let inside = inside.clone();
        others.push(tokio::task::spawn_blocking(move || {
            for turn in 0..TURNS {
                if writes && turn % 2 == 1 {
                    let held = other.take("rw", 60_000, "write").expect("it is served");
                    other.release(&held);
                    continue;
                }
                let held = other.take("x", 60_000, "exclusive").expect("it is served");
                assert_eq!(inside.fetch_add(1, Ordering::AcqRel), 0, "the other library is alone");
                std::thread::sleep(Duration::from_millis(1));
                inside.fetch_sub(1, Ordering::AcqRel);
                other.release(&held);
            }
        }));
    }
    let work = async |client: Client| {
        let mut token = Token::default();
        for _ in 0..TURNS {
            let guard = client.lock("x").acquire_within(3 * PATIENCE).await.expect("it is served");
            assert_eq!(inside.fetch_add(1, Ordering::AcqRel), 0, "fencelock is alone");
            assert!(guard.token() > token);
            token = guard.token();
            tokio::time::sleep(Duration::from_millis(1)).await;
            inside.fetch_sub(1, Ordering::AcqRel);
            guard.release().await.check().expect("it was held");
            if writes {
                let read = client.read_lock("rw").acquire_within(3 * PATIENCE).await;
                drop(read.expect("it is served"));
            }
        }
    };
    let connect = async || fencelock::connect(url).await.expect("it connects");
    tokio::join!(work(connect().await), work(connect().await));
    for other in others {
        other.await.expect("it was never disturbed");
    }
}

/// If a process is killed while it holds the lock, the other side gets the lock within `freed`.
pub async fn the_dead_make_way(
    actor: &str,
    url: &str,
    start: impl Fn() -> Option<OtherLibrary>,
    freed: Duration,
) {
    let ours = fencelock::connect(url).await.expect("it connects");
    let program = Program::new(actor);
    for _ in 0..if crate::in_full() { 20 } else { 1 } {
        let Some(mut theirs) = start() else { return };
        theirs.take(shop::LOCK, 5_000, "exclusive").expect("it is free");
        let next = tokio::spawn(ours.lock(shop::LOCK).acquire_within(PATIENCE));
        waiting(&ours, shop::LOCK, 1).await;
        theirs.kill();
        let died = Instant::now();
        let guard = next.await.expect("the task ends").expect("it is served");
        let took = died.elapsed();
        assert!(took <= freed, "{took:?} after the death of the other library's holder");
        guard.release().await.check().expect("it was held");

        let holder = shop::start(&program, url).await;
        shop::acquire(&holder, TTL).await.expect("it is free");
        let mut waits = start().expect("it was there before");
        waits.send_take(shop::LOCK, 20_000, "exclusive");
        waiting(&ours, shop::LOCK, 1).await;
        tokio::task::block_in_place(|| holder.kill());
        let died = Instant::now();
        let held = tokio::task::block_in_place(|| waits.answer());
        let took = died.elapsed();
        assert!(!held.is_null() && took <= freed, "{took:?} after the death of fencelock's");
        waits.release(&held);
    }
}
