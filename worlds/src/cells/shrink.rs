//! The parts that shrinking can take from such a world.

use super::{Plan, plan, world};
use crate::plan::Cancel;
use crate::shrink::{Seedling, Variants};
use crate::world::Ending;

impl Seedling for Plan {
    fn run(&self, traced: bool) -> Ending {
        world::run(self, traced)
    }

    fn smaller(&self) -> Vec<Self> {
        let mut variants = Variants::of(self);
        variants.without_each(|plan| &mut plan.tasks);
        variants.without_each(|plan| &mut plan.faults);
        for task in 0..self.tasks.len() {
            variants.without_each(|plan| &mut plan.tasks[task].acts);
        }
        variants.calmer(|plan| &mut plan.weather);
        variants.with(|plan| plan.server_drift = 0);
        variants.with(|plan| plan.clients.iter_mut().for_each(|machine| machine.drift = 0));
        variants.with(|plan| plan.off.fill(0));
        variants.with(|plan| (plan.job.at_least, plan.job.at_most) = (None, None));
        variants.with(|plan| plan.job.retry_dead = false);
        for task in 0..self.tasks.len() {
            for act in 0..self.tasks[task].acts.len() {
                variants.with(|plan| plan.tasks[task].acts[act].cancel = Cancel::Never);
                variants.with(|plan| plan.tasks[task].acts[act].end = plan::End::Well);
                variants.with(|plan| plan.tasks[task].acts[act].of = 0);
            }
        }
        variants.all()
    }
}
