//! Many worlds, one seed each, on a few threads.

use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::checker::{Figures, Violation};
use super::plan::{Family, Plan, Subject};
use super::world;

/// One world in so many is run twice, and must be the same to the last poll.
const REPEATED: u64 = 64;

/// Which worlds to run.
#[derive(Clone, Copy, Debug)]
pub struct Campaign {
    /// What they are about, in turn.
    pub about: &'static [Subject],
    /// The first seed.
    pub from: u64,
    /// How many.
    pub seeds: u64,
    /// Their family; each in turn if none is given.
    pub family: Option<Family>,
    /// How many threads run them.
    pub threads: usize,
}

/// The results of all worlds of a campaign.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Worlds in which the store kept its word.
    pub faithful: u64,
    /// Worlds in which it did not.
    pub unfaithful: u64,
    /// All worlds' figures together.
    pub figures: Figures,
    /// The lowest seed found that broke a promise, and which.
    pub found: Option<(u64, Violation)>,
    /// Seeds that did not give the same twice.
    pub unsteady: Vec<u64>,
    /// The time it took.
    pub took: Duration,
}

impl Campaign {
    /// The plan of one of its seeds.
    pub fn plan(&self, seed: u64) -> Plan {
        let subject = self.about[(seed % self.about.len() as u64) as usize];
        Plan::draw(seed, subject, self.family)
    }

    /// Runs the worlds until one breaks a promise.
    pub fn run(&self) -> Outcome {
        let start = Instant::now();
        let (next, stop) = (AtomicU64::new(0), AtomicBool::new(false));
        let total = Mutex::new(Outcome::default());
        thread::scope(|scope| {
            for _ in 0..self.threads.max(1) {
                scope.spawn(|| {
                    let mut own = Outcome::default();
                    while !stop.load(Ordering::Relaxed) {
                        let number = next.fetch_add(1, Ordering::Relaxed);
                        if number >= self.seeds {
                            break;
                        }
                        let seed = self.from + number;
                        own.add(seed, &self.plan(seed));
                        stop.fetch_or(own.failed(), Ordering::Relaxed);
                    }
                    total.lock().expect("no thread panics with it").merge(own);
                });
            }
        });
        let mut outcome = total.into_inner().expect("no thread panics with it");
        outcome.took = start.elapsed();
        outcome
    }
}

impl Outcome {
    /// Whether a promise was broken, or a seed did not repeat.
    pub fn failed(&self) -> bool {
        self.found.is_some() || !self.unsteady.is_empty()
    }

    /// How many worlds were run.
    pub fn worlds(&self) -> u64 {
        self.faithful + self.unfaithful
    }

    fn add(&mut self, seed: u64, plan: &Plan) {
        let mut ending = world::run(plan, false);
        if seed.is_multiple_of(REPEATED) && world::run(plan, false).trace != ending.trace {
            self.unsteady.push(seed);
        }
        if plan.faithful() {
            self.faithful += 1;
        } else {
            self.unfaithful += 1;
        }
        self.figures += ending.figures;
        if !ending.violations.is_empty() {
            self.found = Some((seed, ending.violations.swap_remove(0)));
        }
    }

    fn merge(&mut self, other: Self) {
        self.faithful += other.faithful;
        self.unfaithful += other.unfaithful;
        self.figures += other.figures;
        self.unsteady.extend(other.unsteady);
        let earlier = |one: &(u64, Violation)| self.found.as_ref().is_none_or(|two| one.0 < two.0);
        if let Some(found) = other.found.filter(earlier) {
            self.found = Some(found);
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Figures { grants, hand_overs, cancels, losses, refusals } = self.figures;
        let rate = self.worlds() as f64 / self.took.as_secs_f64().max(0.001);
        write!(
            f,
            "{} worlds ({} faithful, {} unfaithful): {grants} grants, {hand_overs} hand-overs, {cancels} cancels, \
             {losses} losses, {refusals} stale writes refused, {} violations, {rate:.0} worlds/s",
            self.worlds(),
            self.faithful,
            self.unfaithful,
            u64::from(self.found.is_some()),
        )
    }
}
