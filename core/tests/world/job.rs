//! Which run of a job may begin.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use fencelock::port::Runtime;
use fencelock::{Client, Code};
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
    check(run.is_some(), || "no run is due for an hour".to_owned())
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
        check(again.is_none(), || "what was about to end well was run again".to_owned())?;
    }
}
