//! A client is closed while its threads are at work: whatever they had or asked for is given back before it is gone.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use ::shuttle::{check_pct, check_random, future, thread};

use super::super::core::Core;
use super::super::hold::Terms;
use super::super::job::{JobTerms, Schedule, Status};
use super::super::{Local, Wait};
use super::{Still, assert_free, core, release, target};
use crate::driver::memory::Memory;
use crate::port::{CellKey, Family, RuntimeHandle};

/// What a thread is about while its client is closed.
#[derive(Clone, Copy, Debug)]
pub(super) enum Does {
    /// It asks, and keeps what it wins.
    Asks,
    /// It asks, and thinks better of it.
    GivesUp,
    /// It gives back what it has.
    Releases,
    /// The same, and does not stay for the answer.
    Abandons,
    /// The same, and another one of its client is next.
    HandsOver,
    /// It closes the client as well.
    Closes,
}

const PATIENCE: Duration = Duration::from_secs(1);

async fn acquire(core: &Arc<Core>) -> Option<Local> {
    let key = target();
    core.acquire(&key, Terms::of_a_mutex(0), Wait::Forever).await.ok().flatten()
}

/// A lock that is held or asked for at the close.
pub(super) fn locks(does: Does) {
    future::block_on(async move {
        let runtime: RuntimeHandle = Arc::new(Still::default());
        let memory = Memory::new();
        let (closes, last) = (core(&memory, &runtime).await, core(&memory, &runtime).await);
        let asks = matches!(does, Does::Asks | Does::GivesUp);
        let held = if asks { None } else { acquire(&closes).await };
        let mut threads = VecDeque::new();
        if let Does::HandsOver = does {
            let client = closes.clone();
            threads.push_back(thread::spawn(move || drop(future::block_on(acquire(&client)))));
        }
        let client = closes.clone();
        threads.push_back(thread::spawn(move || {
            future::block_on(async {
                match (does, &held) {
                    (Does::GivesUp, _) => {
                        let mut acquire = Box::pin(acquire(&client));
                        let polled =
                            poll_fn(|context| Poll::Ready(acquire.as_mut().poll(context))).await;
                        if let Poll::Ready(Some(local)) = polled {
                            client.abandon(&local);
                        }
                    }
                    (Does::Releases | Does::HandsOver, Some(held)) => release(&client, held).await,
                    (Does::Abandons, Some(held)) => client.abandon(held),
                    (Does::Closes, Some(_)) => client.close(PATIENCE).await,
                    _ => drop(acquire(&client).await),
                }
            });
        }));
        closes.close(PATIENCE).await;
        assert_free(&last, &target(), &runtime).await;
        for thread in threads {
            thread.join().unwrap();
        }
        assert_free(&last, &target(), &runtime).await;
        assert_eq!(closes.load(), (0, 0), "{does:?}");
        last.close(Duration::ZERO).await;
    });
}

/// A run that is being started at the close.
pub(super) fn runs() {
    future::block_on(async {
        let runtime: RuntimeHandle = Arc::new(Still::default());
        let memory = Memory::new();
        let (closes, last) = (core(&memory, &runtime).await, core(&memory, &runtime).await);
        let key = CellKey { family: Family::Job, name: "nightly".into() };
        // It takes a while to be freed.
        let _held = acquire(&closes).await;
        let (client, job) = (closes.clone(), key.clone());
        let starts = thread::spawn(move || {
            let terms = JobTerms {
                schedule: Schedule::At(1_000_000),
                period: PATIENCE,
                ttl: Duration::from_secs(30),
                at_least: Duration::ZERO,
                at_most: None,
                retry_dead: false,
                patience: PATIENCE,
                info: "{}".into(),
            };
            drop(future::block_on(client.start_run(job, terms)));
        });
        closes.close(PATIENCE).await;
        let state = last.job_state(&key).await.unwrap();
        assert!(
            !state.is_some_and(|state| state.status == Status::InProgress),
            "nobody ends the run"
        );
        starts.join().unwrap();
        assert_eq!(closes.load(), (0, 0));
        last.close(Duration::ZERO).await;
    });
}

#[test]
fn a_client_that_closes_leaves_no_lock_behind() {
    let ways =
        [Does::Asks, Does::GivesUp, Does::Releases, Does::Abandons, Does::HandsOver, Does::Closes];
    for does in ways {
        check_random(move || locks(does), 1000);
        check_pct(move || locks(does), 1000, 3);
    }
}

#[test]
fn a_client_that_closes_leaves_no_run_behind() {
    check_random(runs, 1000);
    check_pct(runs, 1000, 3);
}
