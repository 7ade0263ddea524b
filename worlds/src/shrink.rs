//! Cuts a failing world down for as long as it still breaks the same promise.

use std::time::{Duration, Instant};

use super::checker::Rule;
use super::plan::{Cancel, Doing, End, Plan};
use super::weather::Weather;
use super::world::{self, Ending};

/// No more worlds than this are tried, and none after this long: it is for a reader who waits.
const PATIENCE: (usize, Duration) = (3000, Duration::from_secs(20));

/// The seed or plan that a world is made from.
pub trait Seedling: Clone + PartialEq {
    /// Lives the world to its end, with its history if that is `traced`.
    fn run(&self, traced: bool) -> Ending;

    /// The same with one thing less, the largest things first.
    fn smaller(&self) -> Vec<Self>;
}

/// The smallest plan found that still breaks `rule`.
pub fn shrink<P: Seedling>(plan: &P, rule: Rule) -> P {
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
            if smaller.run(false).violations.iter().any(|violation| violation.rule == rule) {
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

/// Collects what changes make of a plan, but for those that change nothing.
pub(super) struct Variants<'a, P> {
    plan: &'a P,
    plans: Vec<P>,
}

impl<'a, P: Clone + PartialEq> Variants<'a, P> {
    pub(super) fn of(plan: &'a P) -> Self {
        Self { plan, plans: Vec::new() }
    }

    pub(super) fn with(&mut self, change: impl Fn(&mut P)) {
        let mut changed = self.plan.clone();
        change(&mut changed);
        if changed != *self.plan {
            self.plans.push(changed);
        }
    }

    /// Without each one of a list.
    pub(super) fn without_each<T>(&mut self, list: impl Fn(&mut P) -> &mut Vec<T>) {
        for at in 0..list(&mut self.plan.clone()).len() {
            self.with(|plan| drop(list(plan).remove(at)));
        }
    }

    /// With each thing less that goes wrong in the weather.
    pub(super) fn calmer(&mut self, weather: impl Fn(&mut P) -> &mut Weather) {
        for calmer in CALMER {
            self.with(|plan| calmer(weather(plan)));
        }
    }

    pub(super) fn all(self) -> Vec<P> {
        self.plans
    }
}

/// Weather with one thing less that goes wrong.
const CALMER: &[fn(&mut Weather)] = &[
    |weather| (weather.lost, weather.refused) = (0, 0),
    |weather| weather.late.0 = 0,
    |weather| weather.torn = 0,
    |weather| weather.doubled = 0,
    |weather| (weather.notices_lost, weather.notices_doubled) = (0, 0),
    |weather| weather.reorders = false,
];

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
        for task in 0..self.tasks.len() {
            for act in 0..self.tasks[task].acts.len() {
                variants.with(|plan| plan.tasks[task].acts[act].cancel = Cancel::Never);
                variants.with(|plan| plan.tasks[task].acts[act].end = End::Release(Cancel::Never));
                variants.with(|plan| plan.tasks[task].acts[act].fair = true);
                variants.with(|plan| plan.tasks[task].acts[act].renew = true);
                variants.with(|plan| plan.tasks[task].acts[act].local = 0);
                variants.with(|plan| plan.tasks[task].acts[act].max_hold = None);
                variants.with(|plan| plan.tasks[task].acts[act].also = None);
                variants.with(|plan| plan.tasks[task].acts[act].scope = None);
                variants.with(|plan| plan.tasks[task].acts[act].section.truncate(1));
                variants.with(|plan| {
                    for doing in &mut plan.tasks[task].acts[act].section {
                        if let Doing::Write(time) | Doing::Freeze(time) = *doing {
                            *doing = Doing::Work(time);
                        }
                    }
                });
            }
        }
        variants.all()
    }
}
