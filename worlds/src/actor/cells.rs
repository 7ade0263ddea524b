//! Values, runs and leaderships: what a task asks for that is no lock.

use std::time::{Duration, UNIX_EPOCH};

use fencelock::port::Runtime;
use fencelock::{Claim, Client, Code, Error, Job, Released, Swapped};

use super::Place;
use crate::cancel::Cancelled;
use crate::checker::{Entry, Fate, Rule, Span};
use crate::plan::{Act, End, name};

impl Place {
    pub(super) async fn add(&self, client: &Client, act: &Act, retries: u32) {
        let by = self.checker.begins();
        let version = client.version(&name(act.lock)).retries(retries);
        let added = version.update(|seen: Option<Entry>| {
            Some(Entry { count: seen.map_or(0, |entry| entry.count) + 1, by })
        });
        let fate = match Cancelled::new(&self.node, act.cancel, added).await {
            None => Fate::Unknown,
            Some(Ok(done)) => Fate::Done(done.map_or(0, |snapshot| snapshot.version.get())),
            Some(Err(error)) => self.explain(&error, retries),
        };
        self.checker.ends(by, fate);
    }

    /// Concludes from an error whether the operation that it ended was carried out.
    fn explain(&self, error: &Error, retries: u32) -> Fate {
        match error.code() {
            Code::Conflict => {
                if error.fields().get("tries") != Some(&(retries + 1).to_string()) {
                    self.checker.wrong_error(error);
                }
                Fate::NotDone
            }
            Code::Unavailable if !self.checker.calm() && error.retryable() => Fate::NotDone,
            // Whoever closes gives up what is under way.
            Code::Unavailable | Code::Closed if !self.checker.calm() => Fate::Unknown,
            // The scheduler's clock is ahead of a store's that stepped back.
            Code::Invalid if self.job.named && self.checker.jumps() => Fate::NotDone,
            _ => {
                self.checker.wrong_error(error);
                Fate::Unknown
            }
        }
    }

    pub(super) async fn delete(&self, client: &Client, act: &Act) {
        let version = client.version(&name(act.lock));
        let deleted = async {
            let Some(seen) = version.read::<Entry>().await? else { return Ok(None) };
            match version.delete::<Entry>(seen.version).await? {
                Swapped::Done(made) => Ok(Some(made)),
                Swapped::Changed(_) => Ok::<_, Error>(None),
            }
        };
        if let Some(Ok(Some(made))) = Cancelled::new(&self.node, act.cancel, deleted).await {
            self.checker.deleted(act.lock, made);
        }
    }

    fn job(&self, client: &Client, act: &Act) -> Job {
        let plan = &self.job;
        let mut job = client.job(&name(act.lock), plan.period);
        job = job.ttl(act.ttl).retry_dead(plan.retry_dead);
        if let Some(time) = plan.at_least {
            job = job.at_least_for(time);
        }
        if let Some(time) = act.max_hold {
            job = job.at_most_for(time);
        }
        if plan.named {
            // By the scheduler's own clock, which may be off.
            let now = Duration::from_micros(self.node.wall()).as_nanos() / plan.period.as_nanos();
            let since = plan.period * u32::try_from(now).unwrap_or(u32::MAX);
            job = job.at(UNIX_EPOCH.checked_add(since).unwrap_or(UNIX_EPOCH));
        }
        job
    }

    pub(super) async fn start(&self, client: &Client, act: &Act) {
        let asks = self.checker.asks(self.number, act.lock, act, false);
        let started = Cancelled::new(&self.node, act.cancel, self.job(client, act).start()).await;
        drop(asks);
        let run = match started {
            Some(Ok(Ok(run))) => run,
            Some(Err(error)) => {
                self.explain(&error, 0);
                return;
            }
            None | Some(Ok(Err(_))) => return,
        };
        let instant = run.instant().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.checker.begun(act.lock, instant, run.token());
        let span = self.checker.holds(self.number, act.lock, act, &run);
        self.stay(&run, span, act).await;
        let released = match act.end {
            End::Release(_) => run.succeed().await,
            End::Fail => run.fail().await,
            End::Drop => return drop(run),
        };
        self.judge_end(released);
    }

    pub(super) async fn lead(&self, client: &Client, act: &Act) {
        let election = client.election(&name(act.lock)).ttl(act.ttl);
        let asks = self.checker.asks(self.number, act.lock, act, true);
        let leads = Cancelled::new(&self.node, act.cancel, election.campaign()).await;
        drop(asks);
        let guard = match leads {
            Some(Ok(guard)) => guard,
            Some(Err(error)) => {
                self.explain(&error, 0);
                return;
            }
            None => return self.checker.count(|figures| figures.cancels += 1),
        };
        let span = self.checker.holds(self.number, act.lock, act, &guard);
        self.stay(&guard, span, act).await;
        match act.end {
            End::Drop => drop(guard),
            End::Release(_) | End::Fail => self.judge_end(guard.release().await),
        }
    }

    async fn stay(&self, claim: &Claim, span: Span, act: &Act) {
        for doing in &act.section {
            self.section(claim, None, &span, act, *doing).await;
        }
    }

    fn judge_end(&self, released: Released) {
        if released == Released::AlreadyLost && self.checker.calm() {
            self.checker.violated(Rule::FalselyLost, "it was lost when it ended".to_owned());
        }
    }
}
