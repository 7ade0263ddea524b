//! The nodes of a quorum, and what happens to them.

use std::time::Duration;

use fencelock_sim::Dice;

use super::{MILLISECOND, Scale};
use crate::plan::{Family, Fault, Loss, Node};

impl Node {
    /// A node whose clock drifts and differs by at most so much.
    pub(super) fn draw(dice: &mut Dice, drift: i32, skew: u64) -> Self {
        let drift = dice.below(2 * drift as u64 + 1) as i32 - drift;
        let skew = dice.below(2 * skew + 1).cast_signed() - skew.cast_signed();
        Self { drift, skew }
    }
}

impl Scale {
    /// Draws the faults that hit the nodes, and the time when everything heals.
    pub(super) fn node_faults(
        &self,
        dice: &mut Dice,
        nodes: &[Node],
        clients: usize,
        max_ttl: Duration,
        heals: Duration,
    ) -> (Vec<(Duration, Fault)>, Duration) {
        let some = |dice: &mut Dice| self.part(dice.between(5, 250));
        let minority = nodes.len() / 2;
        // Which nodes the minority is.
        let first = dice.below(nodes.len().max(1) as u64) as usize;
        let one =
            |dice: &mut Dice| (first + dice.below(minority.max(1) as u64) as usize) % nodes.len();
        let lost =
            |dice: &mut Dice| dice.pick(&[Loss::Nothing, Loss::Everything, Loss::Everything]);
        let moment = |dice: &mut Dice| heals * dice.below(90) as u32 / 100;
        let mut faults = Vec::new();
        match self.family {
            Family::Minority | Family::Votes => {
                for _ in 0..dice.between(1, 4) {
                    let client = dice.below(clients as u64) as usize;
                    let fault = match dice.below(6) {
                        0 | 1 => Fault::NodeCut(one(dice), client, some(dice)),
                        2 => Fault::NodeStall(one(dice), some(dice)),
                        3 => Fault::NodeRestart(one(dice), some(dice) / 4, lost(dice)),
                        4 => Fault::Crash(client),
                        _ => Fault::Pause(client, some(dice)),
                    };
                    faults.push((moment(dice), fault));
                }
                (faults, heals)
            }
            // One after the other, each when the one before has all it needs.
            Family::Amnesia if dice.chance(300) => {
                let period = max_ttl * 2 + Duration::from_millis(2200);
                for (turn, node) in (0..nodes.len()).cycle().take(nodes.len() + 1).enumerate() {
                    let at = period * turn as u32 + MILLISECOND * 50;
                    faults.push((at, Fault::NodeRestart(node, self.part(10), Loss::Everything)));
                }
                (faults, period * nodes.len() as u32 + MILLISECOND * 100)
            }
            // Or whenever it comes.
            Family::Amnesia => {
                for _ in 0..dice.between(1, 2 * nodes.len() as u64) {
                    let node = dice.below(nodes.len() as u64) as usize;
                    let away = self.part(dice.below(30));
                    faults.push((moment(dice), Fault::NodeRestart(node, away, lost(dice))));
                }
                (faults, heals)
            }
            _ => (faults, heals),
        }
    }
}
