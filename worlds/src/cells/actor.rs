//! One task of such a world.

use std::sync::Arc;
use std::time::Duration;

use fencelock::port::Runtime;
use fencelock::{Client, Code, Error, Job, Released, Swapped};
use fencelock_sim::SimNode;
use futures_util::future::select;
use serde::{Deserialize, Serialize};

use super::checker::{Checker, Fate};
use super::plan::{Act, End, Family, Mood, Plan, Task, What};
use crate::cancel::Cancelled;
use crate::checker::Rule;

/// A value: how often it was added to, and by which of all operations last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Entry {
    pub count: u64,
    pub by: u64,
}

/// Where a task runs.
#[derive(Clone)]
pub(super) struct Place {
    pub plan: Arc<Plan>,
    pub node: Arc<SimNode>,
    pub number: usize,
    pub checker: Arc<Checker>,
}

/// The name of a cell, job or election.
pub(super) fn name(of: usize) -> String {
    format!("thing-{of}")
}

impl Place {
    /// Does what the plan says, to the end.
    pub(super) async fn run(self, client: Client, task: Task) {
        for act in &task.acts {
            self.sleep(act.rest).await;
            match (self.plan.family, act.what) {
                (_, What::Add(retries)) => self.add(&client, act, retries).await,
                (_, What::Delete) => self.delete(&client, act).await,
                (Family::Elections, _) => self.lead(&client, act).await,
                _ => self.start(&client, act).await,
            }
        }
    }

    async fn sleep(&self, time: Duration) {
        self.node.sleep_until(self.node.now() + time).await;
    }

    async fn add(&self, client: &Client, act: &Act, retries: u32) {
        let by = self.checker.begins();
        let version = client.version(&name(act.of)).retries(retries);
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
            Code::Unavailable if !self.plan.calm() => {
                if error.retryable() {
                    Fate::NotDone
                } else {
                    Fate::Unknown
                }
            }
            // The scheduler's clock is ahead of a store's that stepped back.
            Code::Invalid if self.plan.job.named && self.plan.mood == Mood::Jumped => Fate::NotDone,
            // Whoever closes gives up what is under way.
            Code::Closed if !self.plan.calm() => Fate::Unknown,
            _ => {
                self.checker.wrong_error(error);
                Fate::Unknown
            }
        }
    }

    async fn delete(&self, client: &Client, act: &Act) {
        let version = client.version(&name(act.of));
        let deleted = async {
            let Some(seen) = version.read::<Entry>().await? else { return Ok(None) };
            match version.delete::<Entry>(seen.version).await? {
                Swapped::Done(made) => Ok(Some(made)),
                Swapped::Changed(_) => Ok::<_, Error>(None),
            }
        };
        if let Some(Ok(Some(made))) = Cancelled::new(&self.node, act.cancel, deleted).await {
            self.checker.deleted(act.of, made);
        }
    }

    fn job(&self, client: &Client, act: &Act) -> Job {
        let plan = &self.plan.job;
        let mut job =
            client.job(&name(act.of), plan.period).ttl(self.plan.ttl).retry_dead(plan.retry_dead);
        if let Some(time) = plan.at_least {
            job = job.at_least_for(time);
        }
        if let Some(time) = plan.at_most {
            job = job.at_most_for(time);
        }
        if plan.named {
            // By the scheduler's own clock, which may be off.
            let now = Duration::from_micros(self.node.wall()).as_nanos() / plan.period.as_nanos();
            job = job.at(plan.period * u32::try_from(now).unwrap_or(u32::MAX));
        }
        job
    }

    async fn start(&self, client: &Client, act: &Act) {
        let job = self.job(client, act);
        let asked = self.checker.asks(self.number);
        let started = Cancelled::new(&self.node, act.cancel, job.start()).await;
        drop(asked);
        let run = match started {
            Some(Ok(Ok(run))) => run,
            Some(Err(error)) => {
                self.explain(&error, 0);
                return;
            }
            None | Some(Ok(Err(_))) => return,
        };
        if !run.is_held() {
            let detail = format!("client {}: {} of {:?}", self.number, run.token(), run.instant());
            self.checker.violated(Rule::BornLost, detail);
        }
        let note = self.checker.begun(self.number, act.of, &run, run.instant());
        select(Box::pin(self.sleep(act.work)), Box::pin(run.lost())).await;
        if !run.is_held() {
            self.checker.lost(self.number);
        }
        let released = match act.end {
            End::Well => run.succeed().await,
            End::Badly => run.fail().await,
            End::Dropped => return drop(run),
        };
        drop(note);
        if released == Released::AlreadyLost && self.plan.calm() && self.plan.job.at_most.is_none()
        {
            self.checker.lost(self.number);
        }
    }

    async fn lead(&self, client: &Client, act: &Act) {
        let election = client.election(&name(act.of)).ttl(self.plan.ttl);
        let asked = self.checker.asks(self.number);
        let leads = Cancelled::new(&self.node, act.cancel, election.campaign()).await;
        drop(asked);
        let leadership = match leads {
            Some(Ok(leadership)) => leadership,
            Some(Err(error)) => {
                self.explain(&error, 0);
                return;
            }
            None => return,
        };
        let note = self.checker.leads(self.number, act.of, &leadership);
        select(Box::pin(self.sleep(act.work)), Box::pin(leadership.lost())).await;
        if !leadership.is_held() {
            self.checker.lost(self.number);
        }
        match act.end {
            End::Dropped => drop(leadership),
            End::Well | End::Badly => drop(leadership.resign().await),
        }
        drop(note);
    }
}
