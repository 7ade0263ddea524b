//! Runs of jobs that last, that nobody hears of and that are given up, in virtual time.
#![cfg(feature = "test-hooks")]
#![allow(missing_docs)]

use crate::machine;

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use fencelock::driver::memory::Memory;
use fencelock::port::Runtime;
use fencelock::{Client, Code, Released};
use fencelock_sim::{Chaos, Fault};

use self::machine::{Machine, live};

const MS: Duration = Duration::from_millis(1);
const HOUR: Duration = Duration::from_hours(1);

#[test]
fn a_start_that_is_given_up_leaves_the_run_to_others() {
    live(async |machine: Machine| {
        let memory = Memory::new();
        let b = machine.client(&memory).await;
        let runtime = machine.runtime();
        let store = memory.store(runtime.clone());
        let slow = Chaos::new(store, runtime.clone(), || Fault::Late(20 * MS));
        let a = Client::builder().runtime(runtime).store(slow).await.unwrap();
        let (ours, theirs) = (a.job("x", HOUR), b.job("x", HOUR));
        // The look is answered by then, the start is not.
        assert!(machine.within(30 * MS, ours.start()).await.is_none());
        while theirs.inspect().await.unwrap().is_none() {
            machine.sleep(MS).await;
        }
        while theirs.inspect().await.unwrap().is_some() {
            machine.sleep(MS).await;
        }
        assert!(theirs.start().await.unwrap().is_ok());
    });
}

#[test]
fn a_run_that_is_not_heard_of_is_dead_and_not_run_again_unless_asked() {
    live(async |machine: Machine| {
        let memory = Memory::new();
        let b = machine.client(&memory).await;
        // From the fourth request on nothing arrives: the look, the lock and the mark do.
        let runtime = machine.runtime();
        let asked = AtomicU64::new(0);
        let choose = move || match asked.fetch_add(1, Ordering::Relaxed) {
            0..=2 => Fault::None,
            _ => Fault::RequestLost,
        };
        let store = Chaos::new(memory.store(runtime.clone()), runtime.clone(), choose);
        let a = Client::builder().runtime(runtime).store(store).await.unwrap();
        let ttl = 200 * MS;
        let run = a.job("x", HOUR).ttl(ttl).start().await.unwrap().unwrap();
        run.lost().await;
        assert!(!run.is_held());
        assert_eq!(run.check().unwrap_err().code(), Code::Lost);
        let job = b.job("x", HOUR).ttl(ttl);
        // Lost before the store says so.
        while !job.inspect().await.unwrap().unwrap().dead {
            machine.sleep(MS).await;
        }
        assert!(job.start().await.unwrap().is_err(), "it may have done its work");
        let again = job.retry_dead(true).start().await.unwrap().expect("asked for");
        assert!(again.token() > run.token());
        assert_eq!(again.instant(), run.instant());
        assert_eq!(run.succeed().await, Released::AlreadyLost);
        assert!(again.is_held());
        assert_eq!(again.succeed().await, Released::Released);
    });
}

#[test]
fn a_run_lives_as_long_as_it_takes_and_no_longer_than_it_may() {
    live(async |machine: Machine| {
        let memory = Memory::new();
        let (a, b) = (machine.client(&memory).await, machine.client(&memory).await);
        let run = a.job("x", 10 * MS).ttl(60 * MS).start().await.unwrap().unwrap();
        machine.sleep(200 * MS).await;
        assert!(run.is_held(), "its end is pushed");
        assert!(b.job("x", 10 * MS).start().await.unwrap().is_err(), "the last one still lasts");
        assert_eq!(run.succeed().await, Released::Released);
        let capped = a.job("y", HOUR).ttl(60 * MS).at_most_for(150 * MS);
        let ended = capped.with(|_| std::future::pending::<Result<(), ()>>()).await;
        assert_eq!(ended.unwrap_err().lock().unwrap().code(), Code::Lost);
        // Rests at least so long, however soon it was over.
        let short = a.job("z", 10 * MS).at_least_for(HOUR);
        assert_eq!(short.start().await.unwrap().unwrap().succeed().await, Released::Released);
        machine.sleep(30 * MS).await;
        assert!(short.start().await.unwrap().is_err());
    });
}

/// A client whose requests meet these faults one after the other, and none later.
async fn client_with(machine: &Machine, memory: &Memory, faults: Vec<Fault>) -> Client {
    let runtime = machine.runtime();
    let asked = AtomicUsize::new(0);
    let choose =
        move || faults.get(asked.fetch_add(1, Ordering::Relaxed)).copied().unwrap_or(Fault::None);
    let store = Chaos::new(memory.store(runtime.clone()), runtime.clone(), choose);
    Client::builder().runtime(runtime).store(store).await.unwrap()
}

#[test]
fn a_start_that_is_answered_after_its_lease_is_taken_back_and_made_again() {
    live(async |machine: Machine| {
        let memory = Memory::new();
        // The look is answered at once, the start 1.5 leases later.
        let a = client_with(&machine, &memory, vec![Fault::None, Fault::Late(300 * MS)]).await;
        let job = a.job("x", HOUR).ttl(200 * MS);
        let run = job.start().await.unwrap().expect("the instant is not lost");
        assert!(run.is_held(), "what is handed out may be relied on");
        assert!(run.remaining() > 150 * MS, "{:?}", run.remaining());
        assert_eq!(run.succeed().await, Released::Released);
        assert!(job.start().await.unwrap().is_err());
    });
}

#[test]
fn a_start_that_is_always_answered_too_late_leaves_the_instant_to_others() {
    live(async |machine: Machine| {
        let memory = Memory::new();
        let b = machine.client(&memory).await;
        let runtime = machine.runtime();
        let store = memory.store(runtime.clone());
        let slow = Chaos::new(store, runtime.clone(), || Fault::Late(300 * MS));
        let a = Client::builder().runtime(runtime).store(slow).await.unwrap();
        let error = a.job("x", HOUR).ttl(200 * MS).start().await.unwrap_err();
        assert_eq!(error.code(), Code::Unavailable);
        let theirs = b.job("x", HOUR);
        // The last of its starts is taken back, too.
        let end = machine.now() + 5000 * MS;
        while theirs.inspect().await.unwrap().is_some() {
            assert!(machine.now() < end, "a start is left that nobody stays for");
            machine.sleep(MS).await;
        }
        assert!(theirs.start().await.unwrap().is_ok());
    });
}
