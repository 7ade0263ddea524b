//! Moves that once came to something else on Redis than in the model.

use fencelock::port::Kind;

use super::{ActionPlan, Floor, Move, Scale, StepPlan, Who};

const TAKE: ActionPlan =
    ActionPlan::Take { ttl: 0, wait: false, block: 1, floor: Floor::None, share: 0 };
const LEAVE_TOMBSTONE: ActionPlan = ActionPlan::Leave { tombstone: true };

fn steps<const N: usize>(kind: Kind, plans: [(u8, ActionPlan); N]) -> Move {
    let plan = |(number, action)| StepPlan { lock: 0, who: Who::Owner(number), kind, action };
    Move::Batch { client: 0, steps: plans.map(plan).into() }
}

/// Each with what it was about.
pub fn found() -> Vec<(&'static str, Scale, Vec<Move>)> {
    let mutex = |plan| steps(Kind::Mutex, [plan]);
    vec![(
        "a tombstone hides when the one before it is swept out with the same step",
        Scale::moved(),
        vec![
            mutex((0, LEAVE_TOMBSTONE)),
            Move::Pass(61),
            mutex((1, LEAVE_TOMBSTONE)),
            mutex((1, TAKE)),
        ],
    )]
}
