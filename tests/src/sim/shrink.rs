//! Cuts a failing world down for as long as it still breaks the same promise.

use super::checker::Rule;
use super::plan::{Cancel, Doing, End, Plan};
use super::world;

/// No more worlds than this are tried.
const PATIENCE: usize = 3000;

/// The smallest plan found that still breaks `rule`.
pub fn shrink(plan: &Plan, rule: Rule) -> Plan {
    let mut best = plan.clone();
    let mut tried = 0;
    loop {
        let mut better = None;
        for smaller in smaller(&best) {
            tried += 1;
            if tried > PATIENCE {
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

/// Plans with one thing less, the largest things first.
fn smaller(plan: &Plan) -> Vec<Plan> {
    let mut plans = Vec::new();
    let mut with = |change: &dyn Fn(&mut Plan)| {
        let mut changed = plan.clone();
        change(&mut changed);
        if changed != *plan {
            plans.push(changed);
        }
    };
    for task in 0..plan.tasks.len() {
        with(&|plan| drop(plan.tasks.remove(task)));
    }
    for fault in 0..plan.faults.len() {
        with(&|plan| {
            plan.faults.remove(fault);
        });
    }
    for task in 0..plan.tasks.len() {
        for act in 0..plan.tasks[task].acts.len() {
            with(&|plan| drop(plan.tasks[task].acts.remove(act)));
        }
    }
    with(&|plan| (plan.weather.lost, plan.weather.refused) = (0, 0));
    with(&|plan| plan.weather.late.0 = 0);
    with(&|plan| plan.weather.torn = 0);
    with(&|plan| plan.weather.doubled = 0);
    with(&|plan| (plan.weather.notices_lost, plan.weather.notices_doubled) = (0, 0));
    with(&|plan| plan.weather.reorders = false);
    with(&|plan| plan.server_drift = 0);
    with(&|plan| plan.clients.iter_mut().for_each(|machine| machine.drift = 0));
    for task in 0..plan.tasks.len() {
        for act in 0..plan.tasks[task].acts.len() {
            with(&|plan| plan.tasks[task].acts[act].cancel = Cancel::Never);
            with(&|plan| plan.tasks[task].acts[act].end = End::Release(Cancel::Never));
            with(&|plan| plan.tasks[task].acts[act].fair = true);
            with(&|plan| plan.tasks[task].acts[act].renew = true);
            with(&|plan| plan.tasks[task].acts[act].local = 0);
            with(&|plan| plan.tasks[task].acts[act].max_hold = None);
            with(&|plan| plan.tasks[task].acts[act].also = None);
            with(&|plan| plan.tasks[task].acts[act].section.truncate(1));
            with(&|plan| {
                for doing in &mut plan.tasks[task].acts[act].section {
                    if let Doing::Write(time) | Doing::Freeze(time) = *doing {
                        *doing = Doing::Work(time);
                    }
                }
            });
        }
    }
    plans
}
