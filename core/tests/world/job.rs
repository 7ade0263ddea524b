//! Which run of a job may begin.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use fencelock::port::Runtime;
use fencelock::{Client, Code, Run, Skipped};
use fencelock_sim::Fault;
use futures_util::future::{Either, select};

use super::{World, check};

const MS: Duration = Duration::from_millis(1);
const HOUR: i64 = 3_600_000_000;

/// The run of a job that was started while the store's clock was ahead keeps none from starting when it is right again.
pub(crate) async fn ahead(world: &World) -> Result<(), String> {
    let (machine, client) = world.machine().await;
    let job = client.job("x", Duration::from_mins(10));
    machine.set_wall(HOUR);
    let run = job.start().await.expect("the store answers").expect("nobody has run it");
    run.succeed().await.check().expect("it lasted");
    machine.set_wall(-HOUR);
    let run = job.start().await.expect("the store answers");
    check(run.is_ok(), || "no run is due for an hour".to_owned())
}

/// An instant far ahead of the store's clock is refused.
pub(crate) async fn far_instant(world: &World) -> Result<(), String> {
    let (machine, client) = world.machine().await;
    let ahead = Duration::from_micros(machine.wall()) + Duration::from_hours(1);
    let started = client.job("x", Duration::from_mins(10)).at(ahead).start().await;
    let code = started.as_ref().err().map(fencelock::Error::code);
    check(code == Some(Code::Invalid), || format!("it came to {started:?}"))
}

/// A run that ends is marked before its lock is free: nobody who makes up for dead runs takes it for one.
pub(crate) async fn marked_first(world: &World) -> Result<(), String> {
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
                return ended.check().map_err(|error| error.to_string());
            }
            Either::Right(((), on)) => ending = on,
        }
        let again = job(&theirs).start().await.expect("the store answers");
        check(again.is_err(), || "what was about to end well was run again".to_owned())?;
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
pub(crate) async fn taken_for_long(world: &World) -> Result<(), String> {
    // It stays for 414 ms. Looks that double their distance end at 310, and the run begins at 399.
    let started = start_beside(world, 207).await;
    check(matches!(started, Ok(Err(_))), || format!("it came to {started:?}"))
}

/// A start that waits in vain reports that the lock is taken, not that the store is silent.
pub(crate) async fn taken_in_vain(world: &World) -> Result<(), String> {
    let error = start_beside(world, 100).await.expect_err("no run has begun");
    let retryable = error.code() == Code::Unavailable && error.retryable();
    let tells = retryable && error.message().contains("another client has the job's lock");
    check(tells, || format!("it is told {error}"))
}
