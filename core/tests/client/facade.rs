//! The pump against hosts that change their minds: whatever the order of grant, abort and drain, nothing stays held.
#![allow(missing_docs, clippy::disallowed_methods)] // A user of the core may use tokio as it likes.

use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use fencelock::driver::memory::Memory;
use fencelock::facade::{Completion, Facade, Form, Granted, JobTimes, Operation, Pump, Wake};
use fencelock::port::RuntimeHandle;
use fencelock::runtime::TokioRuntime;
use fencelock::{Client, Code, Stats, Status};
use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

const HOUR: Duration = Duration::from_hours(1);

fn every(millis: f64) -> JobTimes {
    JobTimes { period: Some(millis), ..JobTimes::default() }
}

struct Host {
    facade: Facade,
    pump: Pump,
    woken: UnboundedReceiver<()>,
}

impl Host {
    async fn over(memory: &Memory) -> Self {
        Self::with(memory, Pump::new).await
    }

    async fn with(memory: &Memory, pump: fn(Wake) -> Pump) -> Self {
        let runtime = Arc::new(TokioRuntime::current().unwrap());
        let client =
            Client::builder().runtime(runtime.clone()).store(memory.store(runtime)).await.unwrap();
        let (wake, woken) = unbounded_channel();
        let pump = pump(Arc::new(move || {
            let _ = wake.send(());
        }));
        Self { facade: Facade::new(client), pump, woken }
    }

    fn acquire(&self) -> u64 {
        let options = serde_json::Map::default();
        let name = "x".into();
        self.submit(Operation::Acquire { name, form: Form::default(), options })
    }

    fn submit(&self, operation: Operation) -> u64 {
        self.pump.submit(&self.facade, operation)
    }

    /// Waits until so many completions were drained.
    async fn completions(&mut self, count: usize) -> Vec<Completion> {
        let mut all = Vec::new();
        while all.len() < count {
            let woken = tokio::time::timeout(Duration::from_secs(10), self.woken.recv()).await;
            woken.expect("a completion wakes the host").unwrap();
            all.extend(self.pump.drain());
        }
        all
    }

    /// Nothing runs, nothing is held, nobody waits.
    async fn is_at_rest(&self) {
        let client = self.facade.client();
        loop {
            let state = client.lock("x").inspect().await.unwrap();
            let loads = [self.pump.load(), self.facade.unfinished()];
            let left = (loads, client.stats(), state.holders.len(), state.waiters.len());
            if left == ([(0, 0); 2], Stats::default(), 0, 0) {
                return;
            }
            tokio::task::yield_now().await;
        }
    }
}

fn granted(done: &Completion) -> Option<Granted> {
    done.result.clone().ok()?.granted()
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
            host.pump.abort(operation);
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
    let loads = (host.pump.load(), host.facade.unfinished());
    assert_eq!(loads, ((0, 1), (0, 0)), "granted, and not drained");
    host.pump.abort(operation);
    let done = host.pump.drain();
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
    let lost = host.submit(Operation::Lost { guard: granted.guard });
    tokio::task::yield_now().await;
    host.submit(Operation::Release { guard: granted.guard, succeeded: false });
    let done = host.completions(2).await;
    let told = done.into_iter().find(|done| done.operation == lost).unwrap();
    assert_eq!(told.result.unwrap_err().code(), Code::NotHeld);
    tokio::time::timeout(Duration::from_secs(10), host.is_at_rest())
        .await
        .expect("nothing is left");
}

#[tokio::test]
async fn what_is_forgotten_is_taken_back_and_not_told() {
    let memory = Memory::new();
    let mut host = Host::over(&memory).await;
    let (granted, waits) = (host.acquire(), host.acquire());
    host.woken.recv().await.unwrap();
    host.pump.forget(granted);
    host.pump.forget(waits);
    assert!(host.pump.drain().is_empty());
    tokio::time::timeout(Duration::from_secs(10), host.is_at_rest())
        .await
        .expect("nothing is left");
}

#[tokio::test]
async fn a_grant_for_a_facade_that_is_gone_is_taken_back() {
    let memory = Memory::new();
    let mut host = Host::over(&memory).await;
    host.acquire();
    host.woken.recv().await.unwrap();
    let other = Host::over(&memory).await;
    host.facade = other.facade;
    let done = host.pump.drain();
    assert_eq!(done[0].result.as_ref().unwrap_err().code(), Code::Closed);
    tokio::time::timeout(Duration::from_secs(10), host.is_at_rest())
        .await
        .expect("nothing is left");
}

#[tokio::test]
async fn what_is_performed_needs_no_pump() {
    let memory = Memory::new();
    let host = Host::over(&memory).await;
    let acquire = || {
        let options = serde_json::Map::default();
        host.facade.perform(Operation::Acquire { name: "x".into(), form: Form::default(), options })
    };
    let granted = acquire().await.unwrap().granted().unwrap();
    let waits = tokio::time::timeout(Duration::from_millis(10), acquire());
    assert!(waits.await.is_err(), "it is somebody's; what is dropped leaves no ticket");
    host.facade
        .perform(Operation::Release { guard: granted.guard, succeeded: false })
        .await
        .unwrap();
    tokio::time::timeout(Duration::from_secs(10), host.is_at_rest())
        .await
        .expect("nothing is left");
}

/// In another layout another one may lead.
#[tokio::test]
async fn a_leader_is_looked_for_with_the_options_of_its_election() {
    let host = Host::over(&Memory::new()).await;
    for (name, value, code) in
        [("dialect", "redisson", Code::Unsupported), ("fair", "false", Code::Invalid)]
    {
        let options = [(name.to_owned(), json!(value))].into_iter().collect();
        let look = host.facade.perform(Operation::Leader { name: "x".into(), options });
        assert_eq!(look.await.unwrap_err().code(), code, "{name}");
    }
}

#[tokio::test]
async fn a_guard_tells_why_it_may_not_be_relied_on() {
    let memory = Memory::new();
    let mut host = Host::over(&memory).await;
    host.acquire();
    let granted = granted(&host.completions(1).await[0]).unwrap();
    host.facade.check(granted.guard).unwrap();
    host.facade.client().close().await;
    let lost = host.facade.check(granted.guard).unwrap_err();
    assert_eq!((lost.code(), lost.fields()["name"].as_str()), (Code::Lost, "x"));
    host.facade.forget(granted.guard);
    assert_eq!(host.facade.check(granted.guard).unwrap_err().code(), Code::NotHeld);
}

#[tokio::test]
async fn what_is_declined_was_never_asked_for() {
    let memory = Memory::new();
    let mut host = Host::over(&memory).await;
    host.acquire();
    let guard = granted(&host.completions(1).await[0]).unwrap().guard;
    host.facade.decline(guard);
    host.facade.decline(guard);
    tokio::time::timeout(Duration::from_secs(10), host.is_at_rest()).await.expect("it is released");

    let start = || {
        let (name, options) = ("nightly".into(), serde_json::Map::default());
        host.facade.perform(Operation::StartJob { name, times: every(1e9), at: Some(1e9), options })
    };
    let run = start().await.unwrap().granted().unwrap();
    host.facade.decline(run.guard);
    let again = async {
        loop {
            if let Some(run) = start().await.unwrap().granted() {
                return run;
            }
            tokio::task::yield_now().await;
        }
    };
    let again = tokio::time::timeout(Duration::from_secs(10), again).await;
    assert!(again.expect("the instant is left to others").token > run.token);
}

#[tokio::test]
async fn a_run_that_ended_before_its_host_looked_is_handed_to_nobody() {
    let memory = Memory::new();
    let mut host = Host::over(&memory).await;
    let mut options = serde_json::Map::default();
    options.insert("at_most_for".into(), "2s".into());
    let name = "nightly".to_owned();
    let start = |options| Operation::StartJob {
        name: name.clone(),
        times: every(1e9),
        at: Some(1e9),
        options,
    };
    host.submit(start(options));
    let woken = tokio::time::timeout(Duration::from_secs(10), host.woken.recv()).await;
    woken.expect("it is answered").unwrap();
    // The host is busy until the run may not last any more.
    tokio::time::sleep(Duration::from_secs(2)).await;
    let ended = host.pump.drain().remove(0).result;
    assert_eq!(ended.unwrap_err().code(), Code::Lost);
    assert_eq!(host.facade.unfinished().1, 0);

    // Nobody has begun it, so the instant is left to others.
    let answer = host.facade.perform(start(serde_json::Map::default())).await.unwrap();
    let run = answer.granted().unwrap();
    host.facade.perform(Operation::Release { guard: run.guard, succeeded: true }).await.unwrap();

    // Why there is none is told in the same place.
    let skipped = json!(host.facade.perform(start(serde_json::Map::default())).await.unwrap());
    assert_eq!(skipped["skipped"]["reason"], "done");
    assert_eq!(skipped["skipped"]["last"]["instant"], 1e9);
}

#[tokio::test]
async fn a_job_has_a_period_or_a_cron_expression() {
    let host = Host::over(&Memory::new()).await;
    let refused = async |times| {
        let start = Operation::StartJob {
            name: "x".into(),
            times,
            at: None,
            options: serde_json::Map::default(),
        };
        let error = host.facade.perform(start).await.unwrap_err();
        assert_eq!(error.code(), Code::Invalid);
        (error.fields()["argument"].clone(), error.message().to_owned())
    };
    let cron = Some("0 3 * * *".to_owned());
    let (argument, message) = refused(JobTimes { cron, ..every(1e9) }).await;
    assert!(argument == "cron" && message.contains("both"), "{argument}: {message}");
    let (argument, message) = refused(JobTimes::default()).await;
    assert!(argument == "period" && message.contains("`0 3 * * *`"), "{argument}: {message}");
    let (argument, _) = refused(JobTimes { timezone: Some("UTC".to_owned()), ..every(1e9) }).await;
    assert_eq!(argument, "timezone");
}

#[tokio::test]
async fn a_panic_is_told_as_a_defect() {
    let memory = Memory::new();
    let mut host = Host::over(&memory).await;
    let runtime: RuntimeHandle = Arc::new(TokioRuntime::current().unwrap());
    let operation = host.pump.run(&runtime, Box::pin(async { panic!("out of paper") }));
    let done = host.completions(1).await.remove(0);
    let error = done.result.unwrap_err();
    assert_eq!((done.operation, error.code()), (operation, Code::Internal));
    assert!(error.message().ends_with("out of paper"), "{error}");
}

#[tokio::test]
async fn what_a_turn_asks_for_is_one_task_and_wakes_the_host_once() {
    let runtime: RuntimeHandle = Arc::new(TokioRuntime::current().unwrap());
    let (begun, rung) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Mutex::new(Vec::new())));
    let pump = Arc::new(OnceLock::<Pump>::new());
    let (woken, ends) = (Arc::downgrade(&pump), rung.clone());
    let wake = move || {
        let ended = woken.upgrade().and_then(|pump| Some(pump.get()?.load().1));
        ends.lock().unwrap().push(ended);
    };
    let pump = pump.get_or_init(|| Pump::gathering(Arc::new(wake)));
    for number in 0..10 {
        let begun = begun.clone();
        let work = async move {
            begun.lock().unwrap().push((number, tokio::task::id()));
            Ok(Value::Null)
        };
        pump.run(&runtime, Box::pin(work));
    }
    tokio::task::yield_now().await;
    assert_eq!(begun.lock().unwrap().len(), 0, "nothing begins before the turn ends");
    pump.set_off(&runtime);
    let rings = async {
        while rung.lock().unwrap().is_empty() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), rings).await.expect("the host is woken");
    let (begun, rung) = (begun.lock().unwrap(), rung.lock().unwrap());
    assert!(begun.iter().map(|(number, _)| *number).eq(0..10), "{begun:?}");
    assert!(begun.iter().all(|(_, task)| *task == begun[0].1), "{begun:?}");
    assert_eq!(*rung, [Some(10)], "how many had ended at each wake-up");
}

#[tokio::test]
async fn what_is_given_up_before_it_is_set_off_leaves_nothing() {
    let memory = Memory::new();
    let mut host = Host::with(&memory, Pump::gathering).await;
    let runtime: RuntimeHandle = Arc::new(TokioRuntime::current().unwrap());
    let [forgotten, aborted, kept] = [host.acquire(), host.acquire(), host.acquire()];
    host.pump.forget(forgotten);
    host.pump.abort(aborted);
    host.pump.set_off(&runtime);
    let done = host.completions(2).await;
    assert_eq!(done.iter().map(|done| done.operation).collect::<Vec<_>>(), [aborted, kept]);
    assert_eq!(done[0].result.as_ref().unwrap_err().code(), Code::Cancelled);
    host.facade.decline(granted(&done[1]).unwrap().guard);
    tokio::time::timeout(Duration::from_secs(10), host.is_at_rest()).await.expect("it is released");

    host.acquire();
    host.pump = Pump::gathering(Arc::new(|| {}));
    tokio::time::timeout(Duration::from_secs(10), host.is_at_rest())
        .await
        .expect("what a pump had not set off ends with it");
}

#[tokio::test]
async fn a_run_whose_end_nobody_stays_for_has_ended_as_was_said() {
    for (turns, succeeded) in (0..8).zip([true, false].into_iter().cycle()) {
        let mut host = Host::over(&Memory::new()).await;
        let start = Operation::StartJob {
            name: "nightly".into(),
            times: every(3_600_000.0),
            at: None,
            options: serde_json::Map::default(),
        };
        host.submit(start);
        let run = granted(&host.completions(1).await[0]).unwrap();
        let end = host.submit(Operation::Release { guard: run.guard, succeeded });
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
