//! Which run of a job is due, by a clock that is right, that was wrong, and that timers do not quite meet; and which of them may begin.

use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fencelock::port::Runtime;
use fencelock::{Client, Code, Job, Reason, Released, Run, Skipped};
use fencelock_sim::Fault;
use futures_util::future::{Either, select};

use crate::world::{MS, World};

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_mins(1);
const HOUR: Duration = Duration::from_hours(1);
const DAY: Duration = Duration::from_hours(24);

/// Two nodes of a fleet, with one clock.
async fn fleet(world: &World) -> (Client, Client) {
    (world.client().await, world.client().await)
}

impl World {
    fn clock(&self) -> Duration {
        Duration::from_micros(self.node.wall())
    }

    /// Until the clock shows so much behind the next multiple of the period.
    async fn until_behind_multiple(&self, period: Duration, behind: Duration) {
        let past = self.node.wall() % micros(period);
        self.sleep(Duration::from_micros(micros(period) - past) + behind).await;
    }

    fn set_clock(&self, forwards: bool, by: Duration) {
        let by = i64::try_from(by.as_micros()).unwrap();
        self.node.set_wall(if forwards { by } else { -by });
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
async fn counted(world: &World, behind: Duration, apart: Duration) -> Vec<u32> {
    let (a, b) = fleet(world).await;
    let (a, b) = (a.job("x", HOUR), b.job("x", HOUR));
    world.until_behind_multiple(HOUR, behind).await;
    let mut counts = Vec::new();
    for hour in 0..6_u32 {
        // Now the one comes first, now the other.
        let (first, second) = if hour.is_multiple_of(2) { (&a, &b) } else { (&b, &a) };
        let count = u32::from(runs(first).await);
        world.sleep(apart).await;
        counts.push(count + u32::from(runs(second).await));
        world.sleep(HOUR.saturating_sub(apart)).await;
    }
    counts
}

fn since(instant: SystemTime) -> Duration {
    instant.duration_since(UNIX_EPOCH).unwrap()
}

async fn timers_that_fire_about_once_in_a_period_run_once_in_each(world: &World) {
    let quarter = Duration::from_millis(250);
    // At the middle, around it, at the multiple, and around that.
    let around = |middle: Duration| middle.saturating_sub(quarter / 2);
    for behind in [30 * MINUTE, around(30 * MINUTE), Duration::ZERO, around(HOUR)] {
        assert_eq!(counted(world, behind, quarter).await, [1; 6], "{behind:?} behind");
    }
    // A node whose clock is minutes ahead of the store's.
    assert_eq!(counted(world, 58 * MINUTE, 2 * MINUTE).await, [1; 6]);
}

async fn an_early_timer_means_the_coming_instant_and_an_earlier_one_the_last(world: &World) {
    let (a, _) = fleet(world).await;
    let instants = async |early: Duration| {
        world.until_behind_multiple(HOUR, HOUR.saturating_sub(early)).await;
        let name = format!("{early:?}");
        let run = a.job(&name, HOUR).start().await.unwrap().expect("nobody has run it");
        let coming = Duration::from_micros(world.node.wall().next_multiple_of(micros(HOUR)));
        (since(run.instant()), coming)
    };
    let (instant, coming) = instants(5 * SECOND).await;
    assert_eq!(instant, coming);
    let (instant, coming) = instants(29 * MINUTE).await;
    assert_eq!(instant + HOUR, coming);
}

async fn a_run_of_a_clock_that_was_ahead_keeps_nothing_from_running(world: &World) {
    let (a, b) = fleet(world).await;
    // A run that has ended, and one that rests.
    let jobs =
        |client: &Client| [client.job("short", HOUR), client.job("rests", HOUR).at_least_for(HOUR)];
    world.set_clock(true, 3 * DAY);
    for job in jobs(&a) {
        assert!(runs(&job).await, "nobody has run it");
    }
    let long = a.job("long", HOUR).start().await.unwrap().expect("nobody has run it");
    world.set_clock(false, 3 * DAY);
    let skipped = b.job("long", HOUR).start().await.unwrap().err();
    assert_eq!(skipped.map(|skipped| skipped.reason), Some(Reason::Running), "it goes on");
    assert_eq!(long.succeed().await, Released::Released);
    for job in jobs(&b) {
        let run = job.start().await.unwrap().unwrap_or_else(|_| panic!("{job:?} runs"));
        assert!(since(run.instant()) <= world.clock() + MINUTE);
        assert_eq!(run.succeed().await, Released::Released);
        assert!(job.start().await.unwrap().is_err(), "once in its period");
    }
}

async fn a_shorter_period_counts_from_the_next_multiple_on(world: &World) {
    let (a, b) = fleet(world).await;
    let week = 7 * DAY;
    world.until_behind_multiple(week, 5 * DAY).await;
    assert!(runs(&a.job("x", week)).await);
    let hourly = b.job("x", HOUR);
    for _ in 0..5 {
        world.sleep(HOUR).await;
        assert!(runs(&hourly).await);
    }
}

/// A run that ends is marked before its lock is free: nobody who makes up for dead runs takes it for one.
async fn marked_first(world: &World) {
    let fault = Arc::new(Mutex::new(Fault::None));
    let (ours, theirs) = (world.struck(&fault).await, world.machine().await.1);
    let job = |client: &Client| client.job("x", Duration::from_mins(10)).retry_dead(true);
    let run = job(&ours).start().await.expect("the store answers").expect("nobody has run it");
    *fault.lock().unwrap() = Fault::Late(100 * MS);
    let mut ending = Box::pin(run.succeed());
    loop {
        let tick = Box::pin(world.sleep(10 * MS));
        match select(ending, tick).await {
            Either::Left((ended, _)) => {
                return ended.check().expect("it lasted");
            }
            Either::Right(((), on)) => ending = on,
        }
        let again = job(&theirs).start().await.expect("the store answers");
        assert!(again.is_err(), "what was about to end well was run again");
    }
}

/// The result of a start that finds the job's lock taken and waits for twice `timeout` ms. The other one has the lock for
/// 400 ms before it marks its run.
async fn start_beside(world: &World, timeout: u32) -> fencelock::Result<Result<Run, Skipped>> {
    let fault = Arc::new(Mutex::new(Fault::None));
    let (slow, store) = (world.struck(&fault).await, world.memory.store(world.node.clone()));
    let builder = Client::builder().runtime(world.node.clone()).option("timeout", timeout);
    let quick = builder.store(store).await.expect("memory connects");
    let [slow, quick] = [slow, quick].map(|client| client.job("x", Duration::from_mins(10)));
    // It reads at 400 ms, has the lock at 800 and marks its run at 1200.
    *fault.lock().unwrap() = Fault::Late(400 * MS);
    let run = world.begin(async move { slow.start().await });
    world.sleep(801 * MS).await;
    let started = quick.start().await;
    drop(run.await.expect("the task ends").expect("the store answers"));
    started
}

/// A start that finds the job's lock taken sees the run that begins just before its caller gives up.
async fn taken_for_long(world: &World) {
    // It stays for 414 ms. Looks that double their distance end at 310, and the run begins at 399.
    let started = start_beside(world, 207).await;
    assert!(matches!(started, Ok(Err(_))), "it came to {started:?}");
}

/// A start that waits in vain reports that the lock is taken, not that the store is silent.
async fn taken_in_vain(world: &World) {
    let error = start_beside(world, 100).await.expect_err("no run has begun");
    let retryable = error.code() == Code::Unavailable && error.retryable();
    let tells = retryable && error.message().contains("another client has the job's lock");
    assert!(tells, "it is told {error}");
}

async fn a_start_that_is_always_answered_too_late_leaves_the_instant_to_others(world: &World) {
    let slow = world.struck(&Arc::new(Mutex::new(Fault::Late(300 * MS)))).await;
    let error = slow.job("x", HOUR).ttl(200 * MS).start().await.unwrap_err();
    assert_eq!(error.code(), Code::Unavailable);
    let theirs = world.client().await.job("x", HOUR);
    // The last of its starts is taken back, too.
    let taken_back = async {
        while theirs.inspect().await.unwrap().is_some() {
            world.sleep(MS).await;
        }
    };
    world.within(5000 * MS, taken_back).await.expect("no start is left that nobody stays for");
    assert!(theirs.start().await.unwrap().is_ok());
}

plays! {
    timers_that_fire_about_once_in_a_period_run_once_in_each,
    an_early_timer_means_the_coming_instant_and_an_earlier_one_the_last,
    a_run_of_a_clock_that_was_ahead_keeps_nothing_from_running,
    a_shorter_period_counts_from_the_next_multiple_on,
    marked_first,
    taken_for_long,
    taken_in_vain,
    a_start_that_is_always_answered_too_late_leaves_the_instant_to_others,
}
