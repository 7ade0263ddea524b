//! The life of a lock over the memory store: the shortest way through every algorithm.
#![allow(missing_docs, clippy::disallowed_methods)] // A user of the core may use tokio as it likes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use fencelock::driver::memory::Memory;
use fencelock::runtime::TokioRuntime;
use fencelock::{Client, Code, Released};
use fencelock_sim::{Count, Meter};

async fn client(memory: &Memory) -> Client {
    let runtime = Arc::new(TokioRuntime::current().expect("inside tokio"));
    let store = memory.store(runtime.clone());
    Client::builder().runtime(runtime).store(store).await.expect("memory connects")
}

const MS: Duration = Duration::from_millis(1);

/// A time beyond all bounds is refused as a lease, and for ever as a wait.
#[tokio::test]
async fn b28_the_longest_duration_is_no_overflow() {
    let client = client(&Memory::new()).await;
    let lock = || client.lock("x");
    let error = lock().ttl(Duration::MAX).acquire().await.unwrap_err();
    assert_eq!((error.code(), error.fields()["argument"].as_str()), (Code::Invalid, "ttl"));
    let guard = lock().max_hold(Duration::MAX).acquire_within(Duration::MAX).await.unwrap();
    let waiting = tokio::spawn(lock().acquire_within(Duration::MAX));
    tokio::time::sleep(20 * MS).await;
    assert!(guard.is_held() && !waiting.is_finished());
    assert_eq!(guard.release().await, Released::Released);
    assert_eq!(waiting.await.unwrap().unwrap().release().await, Released::Released);
}

/// The client does not ask the store for what it knows by itself.
#[tokio::test]
async fn a_try_costs_no_request_while_somebody_of_this_client_holds_the_lock() {
    let runtime = Arc::new(TokioRuntime::current().expect("inside tokio"));
    let count = Count::default();
    let store = Meter::new(Memory::new().store(runtime.clone()), count.clone());
    let client = Client::builder().runtime(runtime).store(store).await.expect("memory connects");
    let guard = client.lock("x").acquire().await.unwrap();
    let before = count.batches();
    assert!(client.lock("x").try_acquire().await.unwrap().is_none());
    assert_eq!(count.batches(), before);
    assert_eq!(guard.release().await, Released::Released);
}

#[tokio::test]
async fn one_holder_at_a_time_and_tokens_rise() {
    let memory = Memory::new();
    let (a, b) = (client(&memory).await, client(&memory).await);
    let first = a.lock("x").acquire().await.unwrap();
    assert!(b.lock("x").try_acquire().await.unwrap().is_none());
    assert!(a.lock("x").try_acquire().await.unwrap().is_none());
    let error = b.lock("x").acquire_within(20 * MS).await.unwrap_err();
    assert_eq!(error.code(), Code::Timeout);
    // What the fields say is said where only the text is shown.
    assert!(error.text().ends_with("(name: x, waited: 20ms)"), "{error}");
    let token = first.token();
    assert_eq!(first.release().await, Released::Released);
    let second = b.lock("x").acquire().await.unwrap();
    assert!(second.token() > token);
    assert_eq!(second.release().await, Released::Released);
    assert_eq!((a.stats(), b.stats()), ((0, 0), (0, 0)));
}

#[tokio::test]
async fn a_release_hands_over_to_the_next_client() {
    let memory = Memory::new();
    let (a, b) = (client(&memory).await, client(&memory).await);
    let guard = a.lock("x").acquire().await.unwrap();
    let waiter = tokio::spawn(b.lock("x").acquire());
    while a.lock("x").inspect().await.unwrap().waiters.is_empty() {
        tokio::task::yield_now().await;
    }
    drop(guard);
    let next =
        tokio::time::timeout(10_000 * MS, waiter).await.expect("handed over").unwrap().unwrap();
    assert!(next.is_held());
}

#[tokio::test]
async fn waiters_of_one_client_pass_the_hold_on() {
    let memory = Memory::new();
    let a = client(&memory).await;
    let counter = Arc::new(AtomicU64::new(0));
    let newest = Arc::new(AtomicU64::new(0));
    let tasks: Vec<_> = (0..8)
        .map(|_| {
            let (lock, counter, newest) = (a.lock("x"), counter.clone(), newest.clone());
            tokio::spawn(async move {
                for _ in 0..200 {
                    let guard = lock.acquire().await.unwrap();
                    let seen = newest.swap(guard.token().get(), Ordering::SeqCst);
                    assert!(seen < guard.token().get());
                    let before = counter.load(Ordering::SeqCst);
                    tokio::task::yield_now().await;
                    counter.store(before + 1, Ordering::SeqCst);
                    assert_eq!(guard.release().await, Released::Released);
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(counter.load(Ordering::SeqCst), 1600);
    assert_eq!(a.stats(), (0, 0));
}

#[tokio::test]
async fn a_cancelled_waiter_leaves_nothing() {
    let memory = Memory::new();
    let (a, b) = (client(&memory).await, client(&memory).await);
    let guard = a.lock("x").acquire().await.unwrap();
    for _ in 0..20 {
        let waiting = tokio::time::timeout(2 * MS, b.lock("x").acquire()).await;
        assert!(waiting.is_err());
    }
    drop(guard);
    let guard =
        tokio::time::timeout(10_000 * MS, b.lock("x").acquire()).await.expect("free").unwrap();
    assert_eq!(guard.release().await, Released::Released);
    let state = a.lock("x").inspect().await.unwrap();
    assert_eq!((state.holders.len(), state.waiters.len()), (0, 0));
}

#[tokio::test]
async fn close_leaves_nothing_and_nobody_waiting() {
    let memory = Memory::new();
    let (a, b) = (client(&memory).await, client(&memory).await);
    let held = a.lock("x").acquire().await.unwrap();
    let other = b.lock("y").acquire().await.unwrap();
    let waiting: Vec<_> = (0..3).map(|_| tokio::spawn(a.lock("y").acquire())).collect();
    while b.lock("y").inspect().await.unwrap().waiters.is_empty() {
        tokio::task::yield_now().await;
    }
    a.close().await;
    assert!(!held.is_held());
    assert_eq!(held.release().await, Released::AlreadyLost);
    for waiting in waiting {
        assert_eq!(waiting.await.unwrap().unwrap_err().code(), Code::Closed);
    }
    assert_eq!(b.lock("y").inspect().await.unwrap().waiters.len(), 0);
    assert_eq!(other.release().await, Released::Released);
    assert_eq!(a.lock("x").acquire().await.unwrap_err().code(), Code::Closed);
    assert!(b.lock("x").try_acquire().await.unwrap().is_some());
    assert!(b.lock("y").try_acquire().await.unwrap().is_some());
    assert_eq!(a.stats(), (0, 0));
}
