//! Holders that die or freeze under load, as programs on real stores: what they guard stays exact, the next grant comes in
//! time, and nothing is left of them.
//!
//! 20 kills a store; 200 with `FENCELOCK_FULL=1`.

use std::time::{Duration, Instant};

use fencelock_peers::Program;
use fencelock_tests::clerk::Post;
use fencelock_tests::protocol::Call;
use fencelock_tests::servers::RedisServer;
use fencelock_tests::shop::{self, MACHINE, NEXT_GRANT, TTL, acquire, ask, nothing_left};
use serde_json::json;

/// For a lease that has not to end.
const LONG: Duration = Duration::from_secs(20);

fn kills() -> usize {
    if fencelock_tests::in_full() { 200 } else { 20 }
}

fn actor() -> Program {
    Program::new(env!("CARGO_BIN_EXE_actor"))
}

async fn kill_holders(url: &str) {
    shop::kill_clerks(url, &vec![Post::Actor(actor()); 4], kills()).await;
}

/// Freezes holder after holder until the next one has the lock: the first thing asked of it then is answered honestly.
async fn freeze_holders(url: &str) {
    for _ in 0..kills() / 4 {
        let (frozen, next) = (shop::start(&actor(), url).await, shop::start(&actor(), url).await);
        let old = acquire(&frozen, TTL).await.unwrap();
        let waiting = tokio::spawn({
            let next = next.clone();
            async move { acquire(&next, LONG).await.unwrap() }
        });
        tokio::task::block_in_place(|| frozen.freeze(true));
        let stopped = Instant::now();
        let new = waiting.await.unwrap();
        assert!(stopped.elapsed() < NEXT_GRANT + MACHINE);
        assert!(new.token > old.token);
        frozen.freeze(false);
        let held = ask(&frozen, Call::IsHeld { guard: old.guard }).await.unwrap();
        assert_eq!(held, json!(false), "at the first look after the freeze");
        let release = ask(&frozen, Call::Release { guard: old.guard }).await.unwrap();
        assert_eq!(release, json!("already_lost"));
        assert_eq!(ask(&next, Call::IsHeld { guard: new.guard }).await.unwrap(), json!(true));
        assert_eq!(
            ask(&next, Call::Release { guard: new.guard }).await.unwrap(),
            json!("released")
        );
    }
    nothing_left(url).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_holders_on_redis() {
    let server = RedisServer::start();
    kill_holders(server.url().as_str()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_holders_in_sqlite() {
    let folder = tempfile::tempdir().unwrap();
    kill_holders(&format!("sqlite:{}", folder.path().join("locks.db").display())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn frozen_holders_on_redis() {
    let server = RedisServer::start();
    freeze_holders(server.url().as_str()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn frozen_holders_in_sqlite() {
    let folder = tempfile::tempdir().unwrap();
    freeze_holders(&format!("sqlite:{}", folder.path().join("locks.db").display())).await;
}
