//! Ends of holds that must not hang on whether somebody else is polled.
#![allow(missing_docs, clippy::disallowed_methods)] // A user of the core may use tokio as it likes.

use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;

use fencelock::driver::memory::Memory;
use fencelock::runtime::TokioRuntime;
use fencelock::{Client, Released};
use futures_util::FutureExt;
use tokio::time::timeout;

const MS: Duration = Duration::from_millis(1);

async fn client(memory: &Memory) -> Client {
    let runtime = Arc::new(TokioRuntime::current().expect("inside tokio"));
    let store = memory.store(runtime.clone());
    Client::builder().runtime(runtime).store(store).await.expect("memory connects")
}

/// A waiter that stands in the line of its client and is not polled any more.
fn unpolled(client: &Client) -> impl Future<Output = fencelock::Result<fencelock::Guard>> {
    let mut waiter = client.lock("x").local(0).acquire();
    assert!(waiter.poll_unpin(&mut Context::from_waker(Waker::noop())).is_pending());
    waiter
}

#[tokio::test]
async fn a_release_waits_for_nobody_elses_poll() {
    let client = client(&Memory::new()).await;
    let guard = client.lock("x").local(0).acquire().await.unwrap();
    let waiter = unpolled(&client);
    let released = timeout(500 * MS, guard.release()).await.expect("the store answered long ago");
    assert_eq!(released, Released::Released);
    assert_eq!(waiter.await.unwrap().release().await, Released::Released);
    assert_eq!(client.stats(), (0, 0));
}

/// A guard that is dropped, and a release that is, free the lock for another client though the next one here sleeps.
#[tokio::test]
async fn a_drop_waits_for_nobody_elses_poll() {
    for cancelled in [false, true] {
        let memory = Memory::new();
        let (one, two) = (client(&memory).await, client(&memory).await);
        let guard = one.lock("x").local(0).acquire().await.unwrap();
        let waiter = unpolled(&one);
        let before = two.lock("x").inspect().await.unwrap().last;
        if cancelled {
            drop(guard.release());
        } else {
            drop(guard);
        }
        let freed = async {
            while two.lock("x").inspect().await.unwrap().last == before {
                tokio::task::yield_now().await;
            }
        };
        timeout(500 * MS, freed).await.expect("the waiter's Take went out with the Free");
        drop(waiter);
        let next = two.lock("x").acquire_within(500 * MS).await.expect("nothing stays behind");
        assert_eq!(next.release().await, Released::Released);
    }
}
