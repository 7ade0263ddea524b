//! Worlds in which some readers ask more than once to become the writer.

use fencelock_sim::Dice;

use crate::plan::{Cancel, Doing, Task};

/// Has some that lose patience with an upgrade ask again, at once. By dice of their own: other worlds are what their seeds have
/// always been.
pub(super) fn draw(tasks: &mut [Task], seed: u64) {
    let dice = &mut Dice::new(seed ^ 0x6f6e_6365).fork();
    if !dice.chance(200) {
        return;
    }
    for act in tasks.iter_mut().flat_map(|task| &mut task.acts) {
        if !matches!(act.section.first(), Some(Doing::Upgrade(_))) {
            continue;
        }
        for _ in 0..dice.between(1, 2) {
            act.section.insert(0, Doing::Upgrade(Cancel::draw(dice, 900, act.ttl)));
        }
    }
}
