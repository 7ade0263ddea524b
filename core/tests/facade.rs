//! The pump against hosts that change their minds: whatever the order of grant, abort and drain, nothing stays held.
#![allow(missing_docs, clippy::disallowed_methods)] // A user of the core may use tokio as it likes.

use std::sync::Arc;
use std::time::Duration;

use fencelock::driver::memory::Memory;
use fencelock::facade::{Completion, Facade, Form, Granted, Operation};
use fencelock::runtime::TokioRuntime;
use fencelock::{Client, Code};
use serde::Deserialize;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

struct Host {
    facade: Facade,
    woken: UnboundedReceiver<()>,
}

impl Host {
    async fn over(memory: &Memory) -> Self {
        let runtime = Arc::new(TokioRuntime::current().unwrap());
        let client =
            Client::builder().runtime(runtime.clone()).store(memory.store(runtime)).await.unwrap();
        let (wake, woken) = unbounded_channel();
        let facade = Facade::new(
            client,
            Arc::new(move || {
                let _ = wake.send(());
            }),
        );
        Self { facade, woken }
    }

    fn acquire(&self) -> u64 {
        let options = serde_json::Map::default();
        self.facade.submit(Operation::Acquire { name: "x".into(), form: Form::default(), options })
    }

    /// Waits until so many completions were drained.
    async fn completions(&mut self, count: usize) -> Vec<Completion> {
        let mut all = Vec::new();
        while all.len() < count {
            let woken = tokio::time::timeout(Duration::from_secs(10), self.woken.recv()).await;
            woken.expect("a completion wakes the host").unwrap();
            all.extend(self.facade.drain());
        }
        all
    }

    /// Nothing runs, nothing is held, nobody waits.
    async fn is_at_rest(&self) {
        let client = self.facade.client();
        loop {
            let state = client.lock("x").inspect().await.unwrap();
            let left =
                (self.facade.load(), client.load(), state.holders.len(), state.waiters.len());
            if left == ((0, 0, 0), (0, 0), 0, 0) {
                return;
            }
            tokio::task::yield_now().await;
        }
    }
}

fn granted(done: &Completion) -> Option<Granted> {
    Granted::deserialize(done.result.as_ref().ok()?).ok()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_abort_that_races_with_the_grant_leaves_nothing_held() {
    let memory = Memory::new();
    let mut host = Host::over(&memory).await;
    for round in 0..2000_u32 {
        let operations = [host.acquire(), host.acquire()];
        // From at once to after the grant, over and over.
        for _ in 0..round % 64 * 16 {
            std::hint::spin_loop();
        }
        for operation in operations {
            host.facade.abort(operation);
        }
        let mut done = host.completions(2).await;
        done.sort_by_key(|done| done.operation);
        let completed = [done[0].operation, done[1].operation];
        assert_eq!(completed, operations, "every operation completes exactly once");
        for done in done {
            let code = done.result.expect_err("what was aborted before it was drained").code();
            assert_eq!(code, Code::Cancelled);
        }
    }
    tokio::time::timeout(Duration::from_secs(10), host.is_at_rest())
        .await
        .expect("all is given back");
}

#[tokio::test]
async fn a_grant_nobody_drained_is_released_by_its_abort_and_by_the_end_of_the_facade() {
    let memory = Memory::new();
    let mut host = Host::over(&memory).await;
    let operation = host.acquire();
    host.woken.recv().await.unwrap();
    assert_eq!(host.facade.load(), (0, 1, 1), "granted, and not drained");
    host.facade.abort(operation);
    let done = host.facade.drain();
    assert_eq!(done[0].result.as_ref().unwrap_err().code(), Code::Cancelled);
    tokio::time::timeout(Duration::from_secs(10), host.is_at_rest()).await.expect("it is released");

    host.acquire();
    host.acquire();
    host.woken.recv().await.unwrap();
    drop(host);
    let other = Host::over(&memory).await;
    tokio::time::timeout(Duration::from_secs(10), other.is_at_rest()).await.expect("so are these");
}

#[tokio::test]
async fn waiting_for_a_loss_ends_when_the_guard_is_given_back() {
    let memory = Memory::new();
    let mut host = Host::over(&memory).await;
    host.acquire();
    let granted = granted(&host.completions(1).await[0]).unwrap();
    let lost = host.facade.submit(Operation::Lost { guard: granted.guard });
    tokio::task::yield_now().await;
    host.facade.submit(Operation::Release { guard: granted.guard });
    let done = host.completions(2).await;
    let told = done.into_iter().find(|done| done.operation == lost).unwrap();
    assert_eq!(told.result.unwrap_err().code(), Code::NotHeld);
    tokio::time::timeout(Duration::from_secs(10), host.is_at_rest())
        .await
        .expect("nothing is left");
}
