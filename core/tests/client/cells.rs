//! Versions, jobs and elections over the memory store, and over one whose answers are lost.
#![allow(missing_docs, clippy::disallowed_methods)] // A user of the core may use tokio as it likes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use fencelock::driver::memory::Memory;
use fencelock::runtime::TokioRuntime;
use fencelock::{Client, Code, Error, Released, Status, Swapped};
use fencelock_sim::{Chaos, Fault};

const MS: Duration = Duration::from_millis(1);
const HOUR: Duration = Duration::from_hours(1);

async fn client(memory: &Memory) -> Client {
    let runtime = Arc::new(TokioRuntime::current().expect("inside tokio"));
    let store = memory.store(runtime.clone());
    Client::builder().runtime(runtime).store(store).await.expect("memory connects")
}

/// A client every so many of whose requests meet this fault.
async fn unlucky(memory: &Memory, every: u64, fault: Fault) -> Client {
    let runtime = Arc::new(TokioRuntime::current().expect("inside tokio"));
    let asked = AtomicU64::new(0);
    let choose = move || match asked.fetch_add(1, Ordering::Relaxed) % every {
        1 => fault,
        _ => Fault::None,
    };
    let store = Chaos::new(memory.store(runtime.clone()), runtime.clone(), choose);
    Client::builder().runtime(runtime).store(store).await.expect("memory connects")
}

#[tokio::test]
async fn only_who_has_read_the_newest_version_writes() {
    let memory = Memory::new();
    let (a, b) = (client(&memory).await, client(&memory).await);
    let (ours, theirs) = (a.version("x"), b.version("x"));
    assert!(ours.read::<u64>().await.unwrap().is_none());
    let Swapped::Done(first) = ours.compare_and_set(None, &1_u64).await.unwrap() else { panic!() };
    let seen = theirs.read::<u64>().await.unwrap().unwrap();
    assert_eq!((seen.value, seen.version), (1, first));
    let Swapped::Done(second) = theirs.compare_and_set(Some(first), &2).await.unwrap() else {
        panic!()
    };
    assert!(second > first);
    let late = ours.compare_and_set(Some(first), &3_u64).await.unwrap();
    assert!(matches!(late, Swapped::Changed(Some(there)) if there.value == 2));
    // A deletion is a change too, and versions rise on from it.
    assert!(matches!(ours.delete::<u64>(second).await.unwrap(), Swapped::Done(_)));
    assert!(theirs.read::<u64>().await.unwrap().is_none());
    let Swapped::Done(third) = theirs.compare_and_set(None, &4_u64).await.unwrap() else {
        panic!()
    };
    assert!(third > second);
    let wrong = theirs.read::<String>().await.unwrap_err();
    assert_eq!(wrong.code(), Code::Conflict);
}

#[tokio::test]
async fn updates_of_many_are_all_counted() {
    let memory = Memory::new();
    let tasks: Vec<_> = (0..8)
        .map(|_| {
            let memory = memory.clone();
            tokio::spawn(async move {
                let counter = client(&memory).await.version("counter").retries(1000);
                for _ in 0..25 {
                    let add = |seen: Option<u64>| Some(seen.unwrap_or(0) + 1);
                    counter.update(add).await.unwrap();
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    let seen = client(&memory).await.version("counter").read::<u64>().await.unwrap().unwrap();
    assert_eq!(seen.value, 200);
}

#[tokio::test]
async fn a_lost_answer_is_looked_for_and_nothing_is_counted_twice() {
    for fault in [Fault::ReplyLost, Fault::RequestLost, Fault::Refused] {
        let memory = Memory::new();
        let other = client(&memory).await;
        // Of three requests the second one: the look goes well, the change does not.
        let counter = unlucky(&memory, 3, fault).await.version("counter");
        let mut told = 0;
        for _ in 0..10 {
            let add = |seen: Option<u64>| Some(seen.unwrap_or(0) + 1);
            match counter.update(add).await {
                Ok(_) => told += 1,
                Err(error) => assert_eq!(error.code(), Code::Unavailable),
            }
            other.version("counter").update(add).await.unwrap();
        }
        let seen = other.version("counter").read::<u64>().await.unwrap().unwrap();
        assert_eq!(seen.value, 10 + told, "{fault:?}");
        assert!(told > 0);
    }
}

#[tokio::test]
async fn an_update_that_always_comes_late_says_how_often_it_tried() {
    let memory = Memory::new();
    let (a, b) = (client(&memory).await, client(&memory).await);
    let rival = b.version("x");
    rival.update(|_: Option<u64>| Some(0)).await.unwrap();
    let version = a.version("x").retries(3).option("backoff", 0);
    let error = version
        .update(|seen: Option<u64>| {
            // From another thread, while this one stands still.
            std::thread::scope(|scope| {
                let write = || {
                    let runtime =
                        tokio::runtime::Builder::new_current_thread().enable_all().build();
                    let add = rival.update(|seen: Option<u64>| seen.map(|n| n + 1));
                    runtime.unwrap().block_on(add).unwrap();
                };
                scope.spawn(write).join().unwrap();
            });
            seen
        })
        .await
        .unwrap_err();
    assert_eq!((error.code(), error.retryable()), (Code::Conflict, true));
    assert_eq!(error.fields()["tries"], "4");
}

#[tokio::test]
async fn a_job_runs_once_in_its_period() {
    let memory = Memory::new();
    let (a, b) = (client(&memory).await, client(&memory).await);
    let run = a.job("nightly", HOUR).start().await.unwrap().expect("nobody has run it");
    assert!(b.job("nightly", HOUR).start().await.unwrap().is_err());
    let state = b.job("nightly", HOUR).inspect().await.unwrap().unwrap();
    assert_eq!((state.status, state.token, state.dead), (Status::InProgress, run.token(), false));
    assert_eq!(state.instant, run.instant());
    assert_eq!(run.succeed().await, Released::Released);
    assert!(b.job("nightly", HOUR).start().await.unwrap().is_err());
    let state = b.job("nightly", HOUR).inspect().await.unwrap().unwrap();
    assert_eq!(state.status, Status::Succeeded);
    // The scheduler's own instants: only later ones start, and their tokens rise.
    let later = b.job("nightly", 20 * MS).at(state.instant + 20 * MS);
    tokio::time::sleep(10 * MS).await;
    let next = later.start().await.unwrap().expect("a later instant");
    assert!(next.token() > state.token);
    assert_eq!(next.fail().await, Released::Released);
    assert!(later.start().await.unwrap().is_err());
    assert_eq!((a.stats(), b.stats()), ((0, 0), (0, 0)));
}

#[tokio::test]
async fn a_body_that_fails_or_is_dropped_marks_its_run() {
    let memory = Memory::new();
    let a = client(&memory).await;
    let job = a.job("x", HOUR);
    let ended = job.with(|_| async { Err::<(), _>("no") }).await.unwrap_err();
    assert_eq!((ended.body(), ended.lock().map(Error::code)), (Some(&"no"), None));
    assert_eq!(job.inspect().await.unwrap().unwrap().status, Status::Failed);
    let job = a.job("y", HOUR);
    let body = job.with(|_| std::future::pending::<Result<(), ()>>());
    assert!(tokio::time::timeout(50 * MS, body).await.is_err());
    while a.stats() != (0, 0) {
        tokio::task::yield_now().await;
    }
    assert_eq!(job.inspect().await.unwrap().unwrap().status, Status::Failed);
}

#[tokio::test]
async fn a_client_that_closes_ends_its_runs() {
    let memory = Memory::new();
    let (a, b) = (client(&memory).await, client(&memory).await);
    let run = a.job("x", HOUR).start().await.unwrap().unwrap();
    a.close().await;
    assert!(!run.is_held());
    let state = b.job("x", HOUR).inspect().await.unwrap().unwrap();
    assert_eq!(state.status, Status::Failed);
    assert_eq!(a.job("x", HOUR).start().await.unwrap_err().code(), Code::Closed);
    assert_eq!(a.version("x").read::<u64>().await.unwrap_err().code(), Code::Closed);
}

#[tokio::test]
async fn leaders_follow_each_other_in_order() {
    let memory = Memory::new();
    let (a, b) = (client(&memory).await, client(&memory).await);
    let (first, second) = (a.election("x").label("a"), b.election("x").label("b"));
    let mut observer = second.clone().option("observe", 10).observe();
    assert_eq!(observer.changed().await.unwrap(), None);
    let leads = first.try_campaign().await.unwrap().expect("nobody leads");
    assert!(second.try_campaign().await.unwrap().is_none());
    let seen = observer.changed().await.unwrap().expect("somebody leads");
    assert_eq!(seen.token, Some(leads.token()));
    assert!(seen.info.contains("\"label\":\"a\""), "{}", seen.info);
    let waits = tokio::spawn(second.campaign());
    assert_eq!(leads.resign().await, Released::Released);
    let next = waits.await.unwrap().unwrap();
    let seen = observer.changed().await.unwrap().expect("somebody leads");
    assert_eq!(seen.token, Some(next.token()));
    let (sender, lost) = tokio::sync::oneshot::channel();
    next.on_lost(move || sender.send(()).expect("somebody waits"));
    b.close().await;
    lost.await.expect("told");
}

#[tokio::test]
async fn wrong_input_is_refused_with_its_name() {
    let memory = Memory::new();
    let a = client(&memory).await;
    let invalid = |error: Error, argument: &str| {
        assert_eq!((error.code(), &*error.fields()["argument"]), (Code::Invalid, argument));
    };
    invalid(a.job("", HOUR).start().await.unwrap_err(), "name");
    invalid(a.job("x", MS).start().await.unwrap_err(), "period");
    invalid(a.job("x", HOUR).at_most_for(Duration::ZERO).start().await.unwrap_err(), "at_most_for");
    invalid(a.version("a\nb").read::<u64>().await.unwrap_err(), "name");
    let large = "x".repeat(1 << 20);
    invalid(a.version("x").compare_and_set(None, &large).await.unwrap_err(), "value");
    invalid(a.election("").leader().await.unwrap_err(), "name");
}
