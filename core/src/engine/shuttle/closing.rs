//! A client is closed while its threads are at work: whatever they had or asked for is given back before it is gone.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use ::shuttle::{future, thread};
use serde_json::Value;

use super::super::{Engine, Local, Request, Wait};
use super::{Still, assert_free, check_pct, check_random, engine, lock_id, release};
use crate::algorithm::{JobRequest, Times};
use crate::driver::memory::Memory;
use crate::port::{CellKey, Family, RuntimeHandle};
use crate::runtime::sync::Mutex;

/// The activity of a thread while its client is closed.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Does {
    /// It asks, and keeps what it wins.
    Asks,
    /// It asks for what another client has.
    Waits,
    /// The same, and is served meanwhile.
    IsServed,
    /// The same, and gives up.
    GivesUp,
    /// It gives back what it has.
    Releases,
    /// The same, and does not stay for the answer.
    Abandons,
    /// It gives back what it has, and another one of its client is next.
    HandsOver,
    /// It does not stay for the answer, and a third one closes the client as well.
    Closes,
}

const WAYS: [Does; 8] = [
    Does::Asks,
    Does::Waits,
    Does::IsServed,
    Does::GivesUp,
    Does::Releases,
    Does::Abandons,
    Does::HandsOver,
    Does::Closes,
];

const PATIENCE: Duration = Duration::from_secs(1);

/// The holds that the threads won of the client that closes.
type Kept = Arc<Mutex<Vec<Local>>>;

async fn acquire(engine: &Arc<Engine>) -> Option<Local> {
    let key = lock_id();
    engine.acquire(&key, Request::of_a_mutex(0), Wait::Forever).await.ok().flatten()
}

async fn acquire_and_keep(engine: Arc<Engine>, kept: Kept) {
    let won = acquire(&engine).await;
    kept.lock().extend(won);
}

async fn ask_and_give_up(engine: Arc<Engine>) {
    let mut acquire = Box::pin(acquire(&engine));
    let polled = poll_fn(|context| Poll::Ready(acquire.as_mut().poll(context))).await;
    assert!(!matches!(polled, Poll::Ready(Some(_))), "another one has it");
}

/// Does this on a thread of its own.
fn start(work: impl Future<Output = ()> + Send + 'static) -> thread::JoinHandle<()> {
    thread::spawn(move || future::block_on(work))
}

/// A lock that is held or asked for at the close.
fn locks(does: Does) {
    future::block_on(async move {
        let runtime: RuntimeHandle = Arc::new(Still::default());
        let memory = Memory::new();
        let (closes, last) = (engine(&memory, &runtime).await, engine(&memory, &runtime).await);
        let elsewhere = matches!(does, Does::Waits | Does::IsServed | Does::GivesUp);
        let mut others = if elsewhere { acquire(&last).await } else { None };
        let held = if elsewhere || does == Does::Asks { None } else { acquire(&closes).await };
        let kept = Kept::default();
        let client = closes.clone();
        let mut threads = VecDeque::from([match (does, held) {
            (Does::GivesUp, _) => start(ask_and_give_up(client)),
            (Does::Releases | Does::HandsOver, Some(held)) => {
                start(async move { release(&client, &held).await })
            }
            (_, Some(held)) => start(async move { client.abandon(&held) }),
            (_, None) => start(acquire_and_keep(client, kept.clone())),
        }]);
        let client = closes.clone();
        match does {
            Does::HandsOver => threads.push_back(start(acquire_and_keep(client, kept.clone()))),
            Does::Closes => {
                threads.push_back(start(async move { client.close(PATIENCE).await }));
            }
            Does::IsServed => {
                let (other, others) = (last.clone(), others.take().unwrap());
                threads.push_back(start(async move { release(&other, &others).await }));
            }
            _ => {}
        }
        closes.close(PATIENCE).await;
        for thread in threads {
            thread.join().unwrap();
        }
        assert!(kept.lock().iter().all(|local| !local.hold.is_held()), "it may write");
        if let Some(others) = others {
            release(&last, &others).await;
        }
        assert_free(&last, &lock_id(), &runtime).await;
        assert_eq!(closes.load(), (0, 0), "{does:?}");
        last.close(Duration::ZERO).await;
    });
}

/// A run that is being started at the close.
fn runs() {
    future::block_on(async {
        let runtime: RuntimeHandle = Arc::new(Still::default());
        let memory = Memory::new();
        let (closes, last) = (engine(&memory, &runtime).await, engine(&memory, &runtime).await);
        let key = CellKey::new(Family::Job, "nightly");
        // It takes a while to be freed.
        let _held = acquire(&closes).await;
        let (client, job) = (closes.clone(), key.clone());
        let starts = thread::spawn(move || {
            let request = JobRequest {
                times: Times::Every(PATIENCE),
                at: Some(1_000_000),
                ttl: Duration::from_secs(30),
                at_least: Duration::ZERO,
                at_most: None,
                retry_dead: false,
                patience: PATIENCE,
                info: "{}".into(),
            };
            matches!(future::block_on(client.start_run(job, request)), Ok(Ok(_)))
        });
        closes.close(PATIENCE).await;
        let has_begun = starts.join().unwrap();
        // As it lies there: whoever looks for a run in progress looks twice.
        let look = last.look(&key).await.unwrap();
        let run = look.value().map(|text| serde_json::from_str::<Value>(text).unwrap());
        let status = run.map(|run| run["status"].clone());
        assert_ne!(status, Some("P".into()), "nobody ends the run");
        assert!(has_begun || status.is_none(), "nobody has begun it, and nobody else will");
        assert_eq!(closes.load(), (0, 0));
        last.close(Duration::ZERO).await;
    });
}

#[test]
fn a_client_that_closes_leaves_no_lock_behind() {
    for does in WAYS {
        check_random(move || locks(does), 1000);
        check_pct(move || locks(does), 1000, 3);
    }
}

#[test]
fn a_client_that_closes_leaves_no_run_behind() {
    check_random(runs, 1000);
    check_pct(runs, 1000, 3);
}
