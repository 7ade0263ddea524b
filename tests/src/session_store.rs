//! Tests of locks on any store with sessions, as programs see them; `ttl` is two seconds here.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use fencelock::{Client, Code, Error, Guard, Stats, Token};
use futures_util::future::join_all;
use url::Url;

use crate::shop::MACHINE;

/// A session of these clients.
pub const TTL: Duration = Duration::from_secs(2);
/// How long something may take that happens.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// A server of such a store.
pub trait SessionServer {
    /// Where locks lie behind a prefix.
    fn url(&self, prefix: &str) -> Url;

    /// Freezes the server.
    fn stop(&self);

    /// Lets a frozen server go on.
    fn cont(&self);

    /// Ends the server at once, as `kill -9` does.
    fn kill_hard(&mut self);

    /// Starts it again, with its data.
    fn start_again(&mut self);

    /// The entries of the lock `x` behind a prefix.
    fn entries_of_x(&self, prefix: &str) -> impl Future<Output = Vec<String>>;
}

/// A client of its own.
pub async fn client(server: &impl SessionServer, prefix: &str) -> Client {
    let url = format!("{}?ttl=2s", server.url(prefix));
    fencelock::connect(&url).await.expect("it connects")
}

/// So many of them.
pub async fn clients(server: &impl SessionServer, prefix: &str, count: usize) -> Vec<Client> {
    join_all((0..count).map(|_| client(server, prefix))).await
}

/// Completes when so many wait for a lock.
pub async fn waiting(client: &Client, name: &str, count: usize) {
    let began = Instant::now();
    while client.lock(name).inspect().await.expect("it answers").waiters.len() != count {
        assert!(began.elapsed() < PATIENCE, "{count} should wait");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// Completes when nothing of the lock `x` is left.
pub async fn nothing_is_left(server: &impl SessionServer, prefix: &str) {
    let began = Instant::now();
    loop {
        let left = server.entries_of_x(prefix).await;
        if left.is_empty() {
            return;
        }
        assert!(began.elapsed() < PATIENCE, "{left:?}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// The code of what failed.
pub fn code<T>(result: Result<T, Error>) -> Option<Code> {
    result.err().map(|error| error.code())
}

/// A lock excludes, its tokens rise, and a client that is closed does nothing more.
pub async fn a_lock_excludes_and_its_tokens_rise(server: &impl SessionServer, prefix: &str) {
    let all = clients(server, prefix, 2).await;
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
    assert_eq!(code(one.lock("a").acquire().await), Some(Code::Closed));
}

/// Readers, writers and permits.
pub async fn read_write_locks_and_permits_keep_their_rules(
    server: &impl SessionServer,
    prefix: &str,
) {
    let all = clients(server, prefix, 3).await;
    let first = all[0].read_lock("x").acquire().await.unwrap();
    let second = all[1].read_lock("x").acquire().await.unwrap();
    assert!(all[2].write_lock("x").try_acquire().await.unwrap().is_none());
    let before = second.token();
    drop((first, second));
    let writer = all[2].write_lock("x").acquire_within(PATIENCE).await.unwrap();
    assert!(writer.token() > before);
    assert!(all[0].read_lock("x").try_acquire().await.unwrap().is_none());
    writer.release().await.check().unwrap();
    let permits: Vec<Guard> = join_all(
        all[..2].iter().map(|client| async { client.semaphore("y", 2).acquire().await.unwrap() }),
    )
    .await;
    assert!(all[2].semaphore("y", 2).try_acquire().await.unwrap().is_none());
    drop(permits);
    drop(all[2].semaphore("y", 2).acquire_within(PATIENCE).await.unwrap());
}

/// So many clients wait, and are served in their order, each with a greater token. How long that takes once the holder goes.
pub async fn waiters_are_served_in_order(
    server: &impl SessionServer,
    prefix: &str,
    waiters: usize,
    before: impl FnOnce(),
) -> Duration {
    let all = clients(server, prefix, waiters + 1).await;
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
    before();
    let began = Instant::now();
    holder.release().await.check().unwrap();
    let mut last = Token::default();
    for wait in waits {
        let token = tokio::time::timeout(PATIENCE, wait).await.expect("it is served").unwrap();
        assert!(token > last);
        last = token;
    }
    let took = began.elapsed();
    nothing_is_left(server, prefix).await;
    took
}

/// A client whose process is gone, with all its tasks.
pub async fn the_lock_of_a_dead_client_is_free_when_its_session_ends(
    server: &impl SessionServer,
    prefix: &str,
) {
    let waiter = client(server, prefix).await;
    let ttl = 2 * TTL;
    let url = format!("{}?ttl={}s", server.url(prefix), ttl.as_secs());
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
    assert!(took <= ttl + MACHINE, "{took:?}");
    assert!(!guard.is_held() && next.token() > guard.token());
}

/// An acquire that is given up at any moment leaves nothing.
pub async fn what_is_given_up_leaves_nothing(server: &impl SessionServer, prefix: &str) {
    let all = clients(server, prefix, 2).await;
    for held in [false, true] {
        let guard = if held { Some(all[0].lock("x").acquire().await.unwrap()) } else { None };
        for micros in (0..3000).step_by(100) {
            let acquire = all[1].lock("x").acquire();
            let _ = tokio::time::timeout(Duration::from_micros(micros), acquire).await;
        }
        if let Some(guard) = guard {
            guard.release().await.check().unwrap();
        }
        nothing_is_left(server, prefix).await;
        assert_eq!(all[1].stats(), Stats::default());
    }
}

/// A server that stands still: its clients lose their locks in time, and go on when it does.
pub async fn a_server_that_hangs_keeps_no_guard_alive(server: &impl SessionServer) {
    let client = client(server, "hangs").await;
    let guard = client.lock("x").acquire().await.unwrap();
    server.stop();
    tokio::time::sleep(TTL).await;
    let is_held = guard.is_held();
    let lost = tokio::time::timeout(PATIENCE, guard.lost()).await;
    server.cont();
    lost.expect("it is told");
    assert!(!is_held, "a lease after the last word of the server");
    drop(client.lock("x").acquire_within(PATIENCE).await.unwrap());
}
