//! Ends that nobody collects: an upgrade is taken back, a run has ended as was said.
#![allow(missing_docs, clippy::disallowed_methods)] // A user of the core may use tokio as it likes.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use fencelock::driver::memory::Memory;
use fencelock::facade::{Facade, Form, Granted, Operation, Pump};
use fencelock::port::Mode;
use fencelock::runtime::TokioRuntime;
use fencelock::{Client, Code, Status};
use futures_util::future::join;
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

    /// What an operation granted.
    async fn granted(&self, operation: Operation) -> Granted {
        Granted::deserialize(self.ends(operation).await).unwrap()
    }

    /// What an operation ended well with.
    async fn ends(&self, operation: Operation) -> Value {
        self.submit(operation);
        self.woken.notified().await;
        json!(self.pump.drain().remove(0).result.unwrap())
    }

    /// What it is held as on the store, once that is `mode`.
    async fn is_held_as(&self, mode: Mode) {
        let lock = self.facade.client().lock("x");
        let looking = async {
            while lock.inspect().await.unwrap().holders[0].mode != mode {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(10), looking).await.expect("it becomes so");
    }
}

fn upgradeable() -> Operation {
    let form = Form { mode: Mode::Upgradeable, ..Form::default() };
    Operation::Acquire { name: "x".into(), form, options: Map::default() }
}

#[tokio::test]
async fn an_upgrade_nobody_collected_is_taken_back_by_its_abort() {
    let host = Host::new().await;
    let guard = host.granted(upgradeable()).await;
    let upgrade = host.submit(Operation::Upgrade { guard: guard.guard });
    host.woken.notified().await;
    host.is_held_as(Mode::Write).await;
    host.pump.abort(upgrade);
    assert!(host.pump.drain()[0].result.is_err());
    host.is_held_as(Mode::Upgradeable).await;
    // It may be asked for again, and is collected then.
    let writer = host.granted(Operation::Upgrade { guard: guard.guard }).await;
    assert!(writer.token > guard.token);
    host.is_held_as(Mode::Write).await;
}

#[tokio::test]
async fn an_upgrade_forgotten_at_any_turn_leaves_the_reader() {
    for turns in 0..8 {
        let host = Host::new().await;
        let guard = host.granted(upgradeable()).await;
        let upgrade = host.submit(Operation::Upgrade { guard: guard.guard });
        for _ in 0..turns {
            tokio::task::yield_now().await;
        }
        host.pump.forget(upgrade);
        host.is_held_as(Mode::Upgradeable).await;
    }
}

#[tokio::test]
async fn an_upgrade_declined_after_its_end_leaves_the_reader() {
    let host = Host::new().await;
    let guard = host.granted(upgradeable()).await.guard;
    let first = host.granted(Operation::Upgrade { guard }).await;
    let upgrade = first.upgrade.unwrap();
    // Of two that stand the second is given up, then the first.
    let again = host.granted(Operation::Upgrade { guard }).await.upgrade.unwrap();
    host.ends(Operation::DeclineUpgrade { guard, upgrade: again }).await;
    host.is_held_as(Mode::Write).await;
    host.ends(Operation::DeclineUpgrade { guard, upgrade }).await;
    host.is_held_as(Mode::Upgradeable).await;
    // Once more is no more than once.
    host.ends(Operation::DeclineUpgrade { guard, upgrade }).await;
    let writer = host.granted(Operation::Upgrade { guard }).await.token;
    host.ends(Operation::DeclineUpgrade { guard, upgrade }).await;
    host.is_held_as(Mode::Write).await;
    assert!(writer > first.token, "each draws a token");
}

#[tokio::test]
async fn a_writer_from_the_start_stays_one() {
    let host = Host::new().await;
    let form = Form { mode: Mode::Write, ..Form::default() };
    let acquire = Operation::Acquire { name: "x".into(), form, options: Map::default() };
    let guard = host.granted(acquire).await.guard;
    let upgrade = host.granted(Operation::Upgrade { guard }).await.upgrade.unwrap();
    for _ in 0..3 {
        host.ends(Operation::DeclineUpgrade { guard, upgrade }).await;
    }
    assert!(host.facade.check(guard).is_ok());
    host.is_held_as(Mode::Write).await;
}

#[tokio::test]
async fn an_upgrade_is_overtaken_by_a_downgrade() {
    for mode in [Mode::Read, Mode::Upgradeable] {
        let host = Host::new().await;
        let reader = host.facade.client().read_lock("x").acquire().await.unwrap();
        let guard = host.granted(upgradeable()).await.guard;
        let upgrade = pin!(host.facade.perform(Operation::Upgrade { guard }));
        let down = async {
            host.ends(Operation::Downgrade { guard, mode }).await;
            reader.release().await.check().unwrap();
        };
        let (upgraded, ()) = join(upgrade, down).await;
        assert_eq!(upgraded.unwrap_err().code(), Code::Cancelled);
        host.is_held_as(mode).await;
    }
}

#[tokio::test]
async fn a_run_whose_end_nobody_stays_for_has_ended_as_was_said() {
    for (turns, succeeded) in (0..8).zip([true, false].into_iter().cycle()) {
        let host = Host::new().await;
        let start = Operation::StartJob {
            name: "nightly".into(),
            period: HOUR.as_secs_f64() * 1000.0,
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
