//! Worlds in which some mutexes are held in scopes, one for each client.

use fencelock::port::Mode;
use fencelock_sim::Dice;

use super::MILLISECOND;
use crate::plan::{Act, Cancel, Doing, Task};

/// Has some acts ask in the scope of their client, and enter once more. By dice of their own: a world without scopes is
/// the one its seed has always been.
pub(super) fn draw(tasks: &mut [Task], seed: u64) {
    let dice = &mut Dice::new(seed ^ 0x7363_6f70_6573).fork();
    if !dice.chance(150) {
        return;
    }
    for act in tasks.iter_mut().flat_map(|task| &mut task.acts) {
        if act.mode == Mode::Exclusive && act.also.is_none() && dice.chance(700) {
            enter(dice, act);
        }
    }
    let scoped = || tasks.iter().flat_map(|task| &task.acts).filter(|act| act.scope.is_some());
    let longest = scoped().map(Act::longest_lease).max();
    for act in tasks.iter_mut().flat_map(|task| &mut task.acts) {
        act.scope = act.scope.and(longest);
    }
}

fn enter(dice: &mut Dice, act: &mut Act) {
    // All of a scope share the hold: what one of them asks of it is asked of all, and none is alone with the resource.
    (act.renew, act.max_hold) = (true, None);
    for doing in &mut act.section {
        match *doing {
            Doing::Write(time) | Doing::Freeze(time) => *doing = Doing::Work(time),
            Doing::Extend(ttl) => *doing = Doing::Work(ttl),
            _ => {}
        }
    }
    let mut longest = act.ttl;
    for _ in 0..dice.below(3) {
        let ttl = (act.ttl * dice.between(50, 300) as u32 / 100).max(MILLISECOND * 10);
        longest = longest.max(ttl);
        let entering = Doing::Enter(ttl, Cancel::draw(dice, 400, act.ttl));
        act.section.insert(dice.below(act.section.len() as u64 + 1) as usize, entering);
    }
    act.scope = Some(longest);
}
