//! Ends of runs that nobody collects: they have ended as was said.
#![allow(missing_docs, clippy::disallowed_methods)] // A user of the core may use tokio as it likes.

use std::sync::Arc;
use std::time::Duration;

use fencelock::driver::memory::Memory;
use fencelock::facade::{Facade, Granted, JobTimes, Operation, Pump};
use fencelock::runtime::TokioRuntime;
use fencelock::{Client, Status};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::sync::Notify;

const HOUR: Duration = Duration::from_hours(1);

struct Host {
    facade: Facade,
    pump: Pump,
    woken: Arc<Notify>,
}

impl Host {
    async fn new() -> Self {
        let runtime = Arc::new(TokioRuntime::current().unwrap());
        let store = Memory::new().store(runtime.clone());
        let client = Client::builder().runtime(runtime).store(store).await.unwrap();
        let woken = Arc::new(Notify::new());
        let waker = woken.clone();
        let pump = Pump::new(Arc::new(move || waker.notify_one()));
        Self { facade: Facade::new(client), pump, woken }
    }

    fn submit(&self, operation: Operation) -> u64 {
        self.pump.submit(&self.facade, operation)
    }

    /// The grant that an operation ended with.
    async fn granted(&self, operation: Operation) -> Granted {
        Granted::deserialize(self.ends(operation).await).unwrap()
    }

    /// The value that an operation ended well with.
    async fn ends(&self, operation: Operation) -> Value {
        self.submit(operation);
        self.woken.notified().await;
        json!(self.pump.drain().remove(0).result.unwrap())
    }
}

#[tokio::test]
async fn a_run_whose_end_nobody_stays_for_has_ended_as_was_said() {
    for (turns, succeeded) in (0..8).zip([true, false].into_iter().cycle()) {
        let host = Host::new().await;
        let start = Operation::StartJob {
            name: "nightly".into(),
            times: JobTimes { period: Some(3_600_000.0), ..JobTimes::default() },
            at: None,
            options: Map::default(),
        };
        let run = host.granted(start).await;
        let end = host.submit(Operation::EndJob { guard: run.guard, succeeded });
        for _ in 0..turns {
            tokio::task::yield_now().await;
        }
        host.pump.forget(end);
        let job = host.facade.client().job("nightly", HOUR);
        let ended = async {
            loop {
                let status = job.inspect().await.unwrap().unwrap().status;
                if status != Status::InProgress {
                    return status;
                }
                tokio::task::yield_now().await;
            }
        };
        let ended = tokio::time::timeout(Duration::from_secs(10), ended).await.expect("it ends");
        let said = if succeeded { Status::Succeeded } else { Status::Failed };
        assert_eq!(ended, said, "after {turns} turns");
    }
}

#[tokio::test]
async fn a_run_ends_at_the_call() {
    let runtime = Arc::new(TokioRuntime::current().unwrap());
    let store = Memory::new().store(runtime.clone());
    let client = Client::builder().runtime(runtime).store(store).await.unwrap();
    let job = client.job("nightly", HOUR);
    let run = job.start().await.unwrap().expect("nobody ran it");
    drop(run.succeed());
    let ended = async {
        while job.inspect().await.unwrap().unwrap().status != Status::Succeeded {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), ended).await.expect("it is marked");
}
