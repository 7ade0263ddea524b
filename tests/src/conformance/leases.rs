//! Which cases rely on leases of their own: longer than what the client connects with, or shorter where the client dies or stands
//! still and so cannot end them.

use std::collections::{BTreeMap, BTreeSet};

use super::case::Case;
use super::step::{Ask, Connect, Expect, Extend, Step};
use crate::protocol::Options;

/// The lease of a lock, in milliseconds, where no option says another.
const TTL: f64 = 30_000.0;

/// Whether a case relies on such leases.
pub(super) fn are_own(case: &Case) -> bool {
    let ttl = ttl(&case.options).unwrap_or(TTL);
    let clients = case.actors.iter().map(|actor| (actor.as_str(), ttl)).collect();
    let (askers, shorter, dead) = Default::default();
    let mut seen = Seen { case, clients, askers, longer: false, shorter, dead };
    seen.read(&case.steps);
    seen.longer || !seen.shorter.is_disjoint(&seen.dead)
}

/// Whether a client connects with a lease that is no whole number of seconds.
pub(super) fn have_part_seconds(case: &Case) -> bool {
    let connects = |step: &Step| {
        let Step::Connect(Connect { options, expect, .. }) = step else { return false };
        is_part(options) && !fails(expect.as_ref())
    };
    is_part(&case.options) || case.steps.iter().any(connects)
}

/// Whether somebody asks for such a lease.
pub(super) fn are_asked_with_part_seconds(steps: &[Step]) -> bool {
    steps.iter().any(|step| match step {
        Step::Acquire(ask) | Step::Try(ask) | Step::Start(ask) => {
            !fails(ask.expect.as_ref()) && is_part(&ask.options)
        }
        Step::Parallel(times) | Step::Repeat(times) => are_asked_with_part_seconds(&times.steps),
        _ => false,
    })
}

fn is_part(options: &Options) -> bool {
    ttl(options).is_some_and(|ttl| ttl % 1000.0 != 0.0)
}

/// The leases and actors seen in a case, step by step.
struct Seen<'a> {
    case: &'a Case,
    /// The lease that each actor connects with.
    clients: BTreeMap<&'a str, f64>,
    /// The actors that may have asked for each guard.
    askers: BTreeMap<&'a str, Vec<&'a str>>,
    /// Whether a lease is longer than its client's.
    longer: bool,
    /// The actors that have asked for shorter ones.
    shorter: BTreeSet<&'a str>,
    /// The actors that die or stand still.
    dead: BTreeSet<&'a str>,
}

impl<'a> Seen<'a> {
    fn read(&mut self, steps: &'a [Step]) {
        for step in steps {
            match step {
                Step::Connect(Connect { actor, options, .. }) => {
                    self.clients.extend(ttl(options).map(|ttl| (actor.as_str(), ttl)));
                }
                Step::Acquire(ask) | Step::Try(ask) | Step::Start(ask) => self.ask(ask),
                Step::Extend(Extend { guard, ttl, expect }) if !fails(expect.as_ref()) => {
                    let askers = self.askers.get(guard.as_str()).cloned().unwrap_or_default();
                    self.wants(&askers, *ttl);
                }
                Step::Kill(actor) | Step::Crash(actor) | Step::Stop(actor) => {
                    self.dead.insert(actor);
                }
                Step::Parallel(times) | Step::Repeat(times) => self.read(&times.steps),
                _ => {}
            }
        }
    }

    fn ask(&mut self, ask: &'a Ask) {
        let askers: Vec<&str> = match ask.by.as_str() {
            "any" => self.case.actors.iter().map(String::as_str).collect(),
            by => by.split(' ').collect(),
        };
        if let Some(ttl) = ttl(&ask.options).filter(|_| !fails(ask.expect.as_ref())) {
            self.wants(&askers, ttl);
        }
        self.askers.extend(ask.r#as.as_deref().map(|guard| (guard, askers)));
    }

    fn wants(&mut self, askers: &[&'a str], ttl: f64) {
        for asker in askers {
            let of_client = self.clients.get(asker).copied().unwrap_or(TTL);
            self.longer |= ttl > of_client;
            if ttl < of_client {
                self.shorter.insert(asker);
            }
        }
    }
}

/// Whether a request is to be refused; then it needs no lease.
fn fails(expect: Option<&Expect>) -> bool {
    matches!(expect, Some(Expect::Error(_)))
}

fn ttl(options: &Options) -> Option<f64> {
    options.get("ttl").and_then(serde_json::Value::as_f64)
}
