//! Many who share one lock.

use std::time::Duration;

use fencelock::port::Mode;
use fencelock_sim::Dice;

use crate::plan::{Act, Cancel, Doing, How, Task};

/// Draws a crowd: all read beside the others and now and then write, or all take one of many permits. The first has it alone
/// until all are there.
pub(super) fn draw(tasks: &mut [Task], seed: u64) {
    let dice = &mut Dice::new(seed ^ 0x63_726f_7764).fork();
    let permits = dice.chance(300);
    let limit = if permits { dice.between(10, 60) as u32 } else { 1 };
    let many = tasks.len() as u32;
    for (number, act) in tasks.iter_mut().flat_map(|task| &mut task.acts).enumerate() {
        let alone = !permits && (number == 0 || dice.chance(30));
        act.mode = match alone {
            _ if permits => Mode::Permit,
            true => Mode::Write,
            false => Mode::Read,
        };
        act.limit = limit;
        act.cancel = Cancel::draw(dice, 20, act.ttl);
        (act.renew, act.max_hold) = (true, None);
        act.how = if dice.chance(50) { How::Within(act.ttl) } else { How::Acquire };
        act.rest = if number == 0 { Duration::ZERO } else { act.ttl / 10 };
        let work = if number == 0 { act.ttl } else { short(act, many) };
        act.section = vec![Doing::Work(work)];
    }
}

/// Writers stand in each other's way: all of them together work no longer than a few leases.
fn short(act: &Act, many: u32) -> Duration {
    if act.mode == Mode::Write { act.ttl * 20 / many } else { act.ttl / 4 }
}
