//! The third act: a counter that many tasks add to at the same time.

use super::conductor::{Conductor, End, Heard, gone};
use super::event::Event;
use super::order::{Order, Report};
use super::shop::Number;

const TASKS: u32 = 100;
const TIMES: u32 = 10;

/// Spreads the tasks over the workers and waits for all of them.
pub(super) async fn count(show: &mut Conductor) -> Result<(), End> {
    let workers = show.crew.size();
    show.show(&Event::Counting { tasks: TASKS, times: TIMES, workers })?;
    for worker in 0..workers {
        let share = workers as u32;
        let tasks = TASKS / share + u32::from((worker as u32) < TASKS % share);
        show.crew.order(worker, Order::Count { tasks, times: TIMES }).await;
    }
    let mut counting = workers;
    while counting > 0 {
        match show.hear().await? {
            Heard::Report(_, Report::Counted { refused, refused_while_held }) => {
                show.verdict.stale_writes_refused += refused;
                show.verdict.refused_while_held += refused_while_held;
                counting -= 1;
            }
            Heard::Gone(worker) => return Err(gone(worker)),
            _ => {}
        }
    }
    show.verdict.counter = show.shop.read(Number::Counter)?;
    show.verdict.counter_target = i64::from(TASKS * TIMES);
    let (counter, target) = (show.verdict.counter, show.verdict.counter_target);
    show.show(&Event::Counted { counter, target })
}
