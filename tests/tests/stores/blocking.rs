//! The blocking twin on real stores: renewal, drop, contention between threads and between clients.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use fencelock::Released;
use fencelock::blocking::{Client, Guard, connect};
use fencelock_tests::servers::RedisServer;

const MS: Duration = Duration::from_millis(1);

/// A lease is renewed while nobody calls, and while another thread calls without a pause. It is long, and seen to be
/// renewed at its third: a disk that stands still for seconds costs no hold.
fn renewal(url: &str) {
    let client = connect(url).unwrap();
    let guard = client.lock("renewed").ttl(9000 * MS).acquire().unwrap();
    renewed(&guard, || thread::sleep(20 * MS));
    renewed(&guard, || client.lock("short").acquire().unwrap().release().check().unwrap());
    assert_eq!(guard.release(), Released::Released);
}

/// Waits, in these steps, until the guard has more time left than before.
fn renewed(guard: &Guard, mut step: impl FnMut()) {
    let mut left = guard.remaining();
    loop {
        step();
        assert!(guard.is_held(), "it had {left:?} left");
        let now = guard.remaining();
        if now > left {
            return;
        }
        left = now;
    }
}

/// A guard that is dropped frees its lock, also together with the last handle of its client.
fn drops(url: &str) {
    let (one, two) = (connect(url).unwrap(), connect(url).unwrap());
    drop(one.lock("dropped").acquire().unwrap());
    two.lock("dropped").acquire_within(5000 * MS).unwrap().release().check().unwrap();
    let guard = one.lock("dropped").acquire().unwrap();
    drop(one);
    drop(guard);
    two.lock("dropped").acquire_within(5000 * MS).unwrap().release().check().unwrap();
}

/// Threads of two clients count together: nothing is lost, tokens rise, everybody gets its turn.
fn contention(url: &str) {
    const ROUNDS: u64 = 25;
    let clients: [Client; 2] = [connect(url).unwrap(), connect(url).unwrap()];
    let (count, newest) = (AtomicU64::new(0), AtomicU64::new(0));
    thread::scope(|scope| {
        for thread in 0..4 {
            let (client, count, newest) = (&clients[thread % 2], &count, &newest);
            scope.spawn(move || {
                for _ in 0..ROUNDS {
                    let guard = client.lock("shared").acquire_within(20_000 * MS).unwrap();
                    let before = newest.swap(guard.token().get(), Ordering::Relaxed);
                    assert!(before < guard.token().get(), "tokens rise");
                    let seen = count.load(Ordering::Relaxed);
                    thread::yield_now();
                    count.store(seen + 1, Ordering::Relaxed);
                    guard.release().check().unwrap();
                }
            });
        }
    });
    assert_eq!(count.into_inner(), 4 * ROUNDS);
}

/// A waiter in one thread is served by a release in another, and one that gives up leaves nothing.
fn waiting(url: &str) {
    let (one, two) = (connect(url).unwrap(), connect(url).unwrap());
    let guard = one.lock("waited").acquire().unwrap();
    assert!(two.lock("waited").try_acquire().unwrap().is_none());
    assert!(two.lock("waited").acquire_within(50 * MS).is_err());
    let (won, told) = channel();
    let waiter = thread::spawn(move || {
        let guard = two.lock("waited").acquire().unwrap();
        won.send(Instant::now()).unwrap();
        guard.release()
    });
    while one.lock("waited").inspect().unwrap().waiters.len() != 1 {
        thread::yield_now();
    }
    guard.release().check().unwrap();
    told.recv_timeout(5000 * MS).expect("the waiter is woken");
    assert_eq!(waiter.join().unwrap(), Released::Released);
    let state = one.lock("waited").inspect().unwrap();
    assert!(state.holders.is_empty() && state.waiters.is_empty(), "{state:?}");
}

fn all(url: &str) {
    thread::scope(|scope| {
        for promise in [renewal, drops, contention, waiting] {
            scope.spawn(move || promise(url));
        }
    });
}

#[test]
fn the_blocking_twin_in_memory() {
    all("memory:blocking");
}

#[test]
fn the_blocking_twin_in_sqlite() {
    let folder = tempfile::tempdir().unwrap();
    all(&format!("sqlite:{}", folder.path().join("locks.db").display()));
}

#[test]
fn the_blocking_twin_on_redis() {
    let server = RedisServer::start();
    all(server.url().as_str());
}
