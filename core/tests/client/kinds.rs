//! Readers, writers, permits, scopes and several locks as one, over the memory store.
#![allow(missing_docs, clippy::disallowed_methods)] // A user of the core may use tokio as it likes.

use std::sync::Arc;
use std::time::Duration;

use fencelock::driver::memory::Memory;
use fencelock::port::{Kind, Mode};
use fencelock::runtime::TokioRuntime;
use fencelock::{Client, Code, Released};

async fn client(memory: &Memory) -> Client {
    let runtime = Arc::new(TokioRuntime::current().expect("inside tokio"));
    let store = memory.store(runtime.clone());
    Client::builder().runtime(runtime).store(store).await.expect("memory connects")
}

async fn two() -> (Client, Client) {
    let memory = Memory::new();
    (client(&memory).await, client(&memory).await)
}

const SOON: Duration = Duration::from_millis(500);
const MS: Duration = Duration::from_millis(1);

async fn waiters(client: &Client, count: usize) {
    while client.read_lock("x").inspect().await.unwrap().waiters.len() != count {
        tokio::task::yield_now().await;
    }
}

/// Whatever was done, nothing stays.
async fn is_at_rest(clients: &[&Client]) {
    for client in clients {
        loop {
            let state = client.lock("x").inspect().await.unwrap();
            if (client.stats(), state.holders.len(), state.waiters.len()) == ((0, 0), 0, 0) {
                break;
            }
            tokio::task::yield_now().await;
        }
    }
}

#[tokio::test]
async fn readers_share_and_a_waiting_writer_stops_new_ones() {
    let (a, b) = two().await;
    let first = a.read_lock("x").acquire().await.unwrap();
    let second = a.read_lock("x").acquire().await.unwrap();
    assert!(second.token() > first.token());
    assert!(b.write_lock("x").try_acquire().await.unwrap().is_none());
    let writer = tokio::spawn(b.write_lock("x").acquire());
    waiters(&a, 1).await;
    assert!(a.read_lock("x").try_acquire().await.unwrap().is_none());
    let late = tokio::spawn(a.read_lock("x").acquire());
    waiters(&a, 2).await;
    drop(first);
    assert_eq!(second.release().await, Released::Released);
    let writer = tokio::time::timeout(SOON, writer).await.unwrap().unwrap().unwrap();
    assert_eq!((writer.mode(), late.is_finished()), (Mode::Write, false));
    assert_eq!(writer.release().await, Released::Released);
    drop(tokio::time::timeout(SOON, late).await.unwrap().unwrap().unwrap());
    is_at_rest(&[&a, &b]).await;
}

#[tokio::test]
async fn one_release_of_a_writer_wakes_the_whole_run_of_readers() {
    let (a, b) = two().await;
    let writer = a.write_lock("x").acquire().await.unwrap();
    let readers: Vec<_> = (0..5).map(|_| tokio::spawn(b.read_lock("x").acquire())).collect();
    waiters(&a, 5).await;
    drop(writer);
    let mut guards = Vec::new();
    for reader in readers {
        guards.push(tokio::time::timeout(SOON, reader).await.unwrap().unwrap().unwrap());
    }
    let state = a.read_lock("x").inspect().await.unwrap();
    assert_eq!((state.kind, state.holders.len()), (Kind::ReadWrite, 5));
    drop(guards);
    is_at_rest(&[&a, &b]).await;
}

#[tokio::test]
async fn no_more_permits_than_there_are() {
    let (a, b) = two().await;
    let first = a.semaphore("x", 2).acquire().await.unwrap();
    let second = b.semaphore("x", 2).acquire().await.unwrap();
    assert!(a.semaphore("x", 2).try_acquire().await.unwrap().is_none());
    let error = a.semaphore("x", 0).acquire().await.unwrap_err();
    assert_eq!(error.code(), Code::Invalid);
    let third = tokio::spawn(a.semaphore("x", 2).acquire());
    waiters(&a, 1).await;
    drop(second);
    let third = tokio::time::timeout(SOON, third).await.unwrap().unwrap().unwrap();
    assert!(third.token() > first.token());
    drop((first, third));
    is_at_rest(&[&a, &b]).await;
}

#[tokio::test]
async fn a_name_is_one_kind_while_it_is_in_use() {
    let (a, b) = two().await;
    let guard = a.lock("x").acquire().await.unwrap();
    for lock in [b.read_lock("x"), b.semaphore("x", 2)] {
        let error = lock.acquire().await.unwrap_err();
        assert_eq!(error.code(), Code::Conflict);
        assert!(error.to_string().contains("mutex"), "{error}");
    }
    assert_eq!(guard.release().await, Released::Released);
    drop(b.read_lock("x").acquire().await.unwrap());
    is_at_rest(&[&a, &b]).await;
}

#[tokio::test]
async fn a_scope_enters_again_and_frees_at_the_last() {
    let (a, b) = two().await;
    let scope = a.scope();
    let outer = scope.lock("x").acquire().await.unwrap();
    let inner = scope.lock("x").ttl(Duration::from_mins(2)).acquire().await.unwrap();
    assert_eq!(outer.token(), inner.token());
    assert!(inner.remaining() > Duration::from_secs(100));
    assert!(a.lock("x").try_acquire().await.unwrap().is_none());
    let claim = inner.claim();
    assert_eq!(inner.release().await, Released::Released);
    assert_eq!(claim.check().unwrap_err().code(), Code::NotHeld);
    assert!(outer.is_held() && b.lock("x").try_acquire().await.unwrap().is_none());
    drop(outer);
    is_at_rest(&[&a, &b]).await;
}

#[tokio::test]
async fn two_of_a_scope_that_ask_at_once_enter_both() {
    let (a, b) = two().await;
    let scope = a.scope();
    let held = b.lock("x").acquire().await.unwrap();
    let ask = || tokio::spawn(scope.lock("x").acquire());
    let (first, second) = (ask(), ask());
    waiters(&b, 1).await;
    assert!(scope.lock("x").try_acquire().await.unwrap().is_none());
    first.abort();
    drop(held);
    let second = tokio::time::timeout(SOON, second).await.unwrap().unwrap().unwrap();
    drop((second, scope.lock("x").acquire().await.unwrap()));
    is_at_rest(&[&a, &b]).await;
}

#[tokio::test]
async fn all_or_none() {
    let (a, b) = two().await;
    let held = b.lock("y").acquire().await.unwrap();
    assert!(a.all(["y", "x"]).try_acquire().await.unwrap().is_none());
    let error = a.all(["y", "x"]).acquire_within(20 * MS).await.unwrap_err();
    assert_eq!(error.code(), Code::Timeout);
    is_at_rest(&[&a]).await;
    let both = tokio::spawn(a.all(["y", "x"]).acquire());
    drop(held);
    let both = tokio::time::timeout(SOON, both).await.unwrap().unwrap().unwrap();
    assert_eq!(both.tokens().map(|(name, _)| name).collect::<Vec<_>>(), ["x", "y"]);
    assert!(b.lock("x").try_acquire().await.unwrap().is_none());
    assert_eq!(both.release().await, Released::Released);
    let free = a.all(["x", "z"]).try_acquire().await.unwrap().unwrap();
    drop(free);
    for names in [&["x", "x"][..], &[]] {
        assert_eq!(a.all(names).acquire().await.unwrap_err().code(), Code::Invalid);
    }
    is_at_rest(&[&a, &b]).await;
}
