//! Which run of a job is due, by a clock that is right, that was wrong, and that timers do not quite meet.
#![cfg(feature = "test-hooks")]
#![allow(missing_docs)]

use crate::machine;

use std::time::Duration;

use fencelock::driver::memory::Memory;
use fencelock::port::Runtime;
use fencelock::{Client, Code, Job, Reason, Released};

use self::machine::{Machine, live};

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_mins(1);
const HOUR: Duration = Duration::from_hours(1);
const DAY: Duration = Duration::from_hours(24);

/// Two nodes of a fleet, with one clock.
async fn fleet(machine: &Machine) -> (Client, Client) {
    let memory = Memory::new();
    (machine.client(&memory).await, machine.client(&memory).await)
}

impl Machine {
    fn clock(&self) -> Duration {
        Duration::from_micros(self.wall())
    }

    /// Until the clock shows so much behind the next multiple of the period.
    async fn until_behind_multiple(&self, period: Duration, behind: Duration) {
        let past = self.wall() % micros(period);
        self.sleep(Duration::from_micros(micros(period) - past) + behind).await;
    }

    fn set_clock(&self, forwards: bool, by: Duration) {
        let by = i64::try_from(by.as_micros()).unwrap();
        self.set_wall(if forwards { by } else { -by });
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap()
}

/// Whether a run was due; it has succeeded then.
async fn runs(job: &Job) -> bool {
    let Ok(run) = job.start().await.unwrap() else { return false };
    assert_eq!(run.succeed().await, Released::Released);
    true
}

/// How often the timers of both nodes, the one a little before the other, have a job run in each of its periods.
async fn counted(machine: &Machine, behind: Duration, apart: Duration) -> Vec<u32> {
    let (a, b) = fleet(machine).await;
    let (a, b) = (a.job("x", HOUR), b.job("x", HOUR));
    machine.until_behind_multiple(HOUR, behind).await;
    let mut counts = Vec::new();
    for hour in 0..6_u32 {
        // Now the one comes first, now the other.
        let (first, second) = if hour.is_multiple_of(2) { (&a, &b) } else { (&b, &a) };
        let count = u32::from(runs(first).await);
        machine.sleep(apart).await;
        counts.push(count + u32::from(runs(second).await));
        machine.sleep(HOUR.saturating_sub(apart)).await;
    }
    counts
}

#[test]
fn timers_that_fire_about_once_in_a_period_run_once_in_each() {
    live(async |machine: Machine| {
        let quarter = Duration::from_millis(250);
        // At the middle, around it, at the multiple, and around that.
        let around = |middle: Duration| middle.saturating_sub(quarter / 2);
        for behind in [30 * MINUTE, around(30 * MINUTE), Duration::ZERO, around(HOUR)] {
            assert_eq!(counted(&machine, behind, quarter).await, [1; 6], "{behind:?} behind");
        }
        // A node whose clock is minutes ahead of the store's.
        assert_eq!(counted(&machine, 58 * MINUTE, 2 * MINUTE).await, [1; 6]);
    });
}

#[test]
fn an_early_timer_means_the_coming_instant_and_an_earlier_one_the_last() {
    live(async |machine: Machine| {
        let (a, _) = fleet(&machine).await;
        let instants = async |early: Duration| {
            machine.until_behind_multiple(HOUR, HOUR.saturating_sub(early)).await;
            let name = format!("{early:?}");
            let run = a.job(&name, HOUR).start().await.unwrap().expect("nobody has run it");
            let coming = Duration::from_micros(machine.wall().next_multiple_of(micros(HOUR)));
            (run.instant(), coming)
        };
        let (instant, coming) = instants(5 * SECOND).await;
        assert_eq!(instant, coming);
        let (instant, coming) = instants(29 * MINUTE).await;
        assert_eq!(instant + HOUR, coming);
    });
}

#[test]
fn a_run_of_a_clock_that_was_ahead_keeps_nothing_from_running() {
    live(async |machine: Machine| {
        let (a, b) = fleet(&machine).await;
        // A run that has ended, and one that rests.
        let jobs = |client: &Client| {
            [client.job("short", HOUR), client.job("rests", HOUR).at_least_for(HOUR)]
        };
        machine.set_clock(true, 3 * DAY);
        for job in jobs(&a) {
            assert!(runs(&job).await, "nobody has run it");
        }
        let long = a.job("long", HOUR).start().await.unwrap().expect("nobody has run it");
        machine.set_clock(false, 3 * DAY);
        let skipped = b.job("long", HOUR).start().await.unwrap().err();
        assert_eq!(skipped.map(|skipped| skipped.reason), Some(Reason::Running), "it goes on");
        assert_eq!(long.succeed().await, Released::Released);
        for job in jobs(&b) {
            let run = job.start().await.unwrap().unwrap_or_else(|_| panic!("{job:?} runs"));
            assert!(run.instant() <= machine.clock() + MINUTE);
            assert_eq!(run.succeed().await, Released::Released);
            assert!(job.start().await.unwrap().is_err(), "once in its period");
        }
    });
}

#[test]
fn an_instant_far_ahead_of_the_clock_is_refused() {
    live(async |machine: Machine| {
        let (a, _) = fleet(&machine).await;
        let job = a.job("x", HOUR);
        let wrong = job.clone().at(machine.clock() + 2 * HOUR).start().await.unwrap_err();
        assert_eq!(wrong.code(), Code::Invalid);
        assert_eq!(wrong.fields()["argument"], "at");
        assert!(job.inspect().await.unwrap().is_none(), "nothing was started");
        // The scheduler's clock may be a little ahead.
        assert!(runs(&job.at(machine.clock() + 20 * SECOND)).await);
    });
}

#[test]
fn a_shorter_period_counts_from_the_next_multiple_on() {
    live(async |machine: Machine| {
        let (a, b) = fleet(&machine).await;
        let week = 7 * DAY;
        machine.until_behind_multiple(week, 5 * DAY).await;
        assert!(runs(&a.job("x", week)).await);
        let hourly = b.job("x", HOUR);
        for _ in 0..5 {
            machine.sleep(HOUR).await;
            assert!(runs(&hourly).await);
        }
    });
}

#[test]
fn no_two_starts_come_within_half_a_period() {
    live(async |machine: Machine| {
        let (a, b) = fleet(&machine).await;
        let start = machine.clock().saturating_sub(10 * HOUR);
        let at = |client: &Client, instant: u32| client.job("x", HOUR).at(start + HOUR * instant);
        assert!(runs(&at(&a, 1)).await);
        assert!(!runs(&at(&b, 2)).await, "a scheduler that names another instant");
        machine.sleep(29 * MINUTE).await;
        assert!(!runs(&at(&b, 2)).await);
        machine.sleep(2 * MINUTE).await;
        assert!(runs(&at(&b, 2)).await);
    });
}
