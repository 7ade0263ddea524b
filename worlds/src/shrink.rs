//! Cuts a failing world down for as long as it still breaks the same promise.

use std::time::{Duration, Instant};

use super::cancel::Cancel;
use super::checker::Rule;
use super::plan::{Act, Doing, End, Plan};
use super::world;

/// No more worlds than this are tried, and none after this long: it is for a reader who waits.
const PATIENCE: (usize, Duration) = (3000, Duration::from_secs(20));

/// What a world can do without.
const OF_A_WORLD: &[fn(&mut Plan)] = &[
    |plan| (plan.conditions.lost, plan.conditions.refused) = (0, 0),
    |plan| plan.conditions.late.0 = 0,
    |plan| plan.conditions.torn = 0,
    |plan| plan.conditions.doubled = 0,
    |plan| (plan.conditions.notices_lost, plan.conditions.notices_doubled) = (0, 0),
    |plan| plan.conditions.reorders = false,
    |plan| plan.server_drift = 0,
    |plan| plan.clients.iter_mut().for_each(|machine| machine.drift = 0),
    |plan| plan.clients.iter_mut().for_each(|machine| machine.skew = machine.skew.and(Some(0))),
    |plan| plan.job.at_least = None,
    |plan| plan.job.retry_dead = false,
];

/// What an act can do without.
const OF_AN_ACT: &[fn(&mut Act)] = &[
    |act| act.cancel = Cancel::Never,
    |act| act.end = End::Release(Cancel::Never),
    |act| act.fair = true,
    |act| act.renew = true,
    |act| act.local = 0,
    |act| act.max_hold = None,
    |act| act.also = None,
    |act| act.scope = None,
    |act| act.section.truncate(1),
    |act| {
        for doing in &mut act.section {
            if let Doing::Write(time) | Doing::Freeze(time) = *doing {
                *doing = Doing::Work(time);
            }
        }
    },
];

/// The smallest plan found that still breaks `rule`.
pub fn shrink(plan: &Plan, rule: Rule) -> Plan {
    let (most, longest) = PATIENCE;
    let begin = Instant::now();
    let mut best = plan.clone();
    let mut tried = 0;
    loop {
        let mut better = None;
        for smaller in best.smaller() {
            tried += 1;
            if tried > most || begin.elapsed() > longest {
                return best;
            }
            let ending = world::run(&smaller, false);
            if ending.violations.iter().any(|violation| violation.rule == rule) {
                better = Some(smaller);
                break;
            }
        }
        match better {
            Some(smaller) => best = smaller,
            None => return best,
        }
    }
}

impl Plan {
    /// The same with one thing less, the largest things first.
    pub fn smaller(&self) -> Vec<Self> {
        let mut all = Vec::new();
        let mut without = |change: &dyn Fn(&mut Self)| {
            let mut changed = self.clone();
            change(&mut changed);
            if changed != *self {
                all.push(changed);
            }
        };
        (0..self.tasks.len()).for_each(|task| without(&|plan| drop(plan.tasks.remove(task))));
        (0..self.faults.len()).for_each(|fault| without(&|plan| _ = plan.faults.remove(fault)));
        let counts = || self.tasks.iter().map(|task| task.acts.len()).enumerate();
        let acts = || counts().flat_map(|(task, acts)| (0..acts).map(move |act| (task, act)));
        acts().for_each(|(task, act)| without(&|plan| drop(plan.tasks[task].acts.remove(act))));
        for change in OF_A_WORLD {
            without(change);
        }
        for (task, act) in acts() {
            for change in OF_AN_ACT {
                without(&|plan| change(&mut plan.tasks[task].acts[act]));
            }
        }
        all
    }
}
