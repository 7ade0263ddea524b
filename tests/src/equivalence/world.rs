//! The model's side of a run.

use std::collections::BTreeMap;
use std::sync::Arc;

use fencelock::driver::record::{Record, StepContext};
use fencelock::port::{LockKey, Notice, Outcome, OwnerId, Step};

use super::moves::{CLIENTS, Scale, StepPlan};

/// Every lock's record, by the model.
pub(super) struct World {
    pub(super) now: u64,
    /// The clients that still listen.
    pub(super) connected: [bool; CLIENTS],
    /// Whether the store can tell that; otherwise all count as listening.
    told_apart: bool,
    /// The notices that each client should have received and has not been asked about.
    pub(super) told: [Vec<Notice>; CLIENTS],
    records: BTreeMap<LockKey, Record>,
    /// Since when the store has kept its data.
    born: u64,
}

impl World {
    pub(super) fn new(now: u64, told_apart: bool) -> Self {
        let (told, records) = Default::default();
        Self { now, connected: [true; CLIENTS], told_apart, told, records, born: now }
    }

    /// The highest token drawn so far.
    pub(super) fn last(&self, lock: &LockKey) -> u64 {
        self.records.get(lock).map_or(0, |record| record.last)
    }

    /// One of those who held it when it was last looked at.
    pub(super) fn holder(&self, lock: &LockKey, number: usize) -> Option<OwnerId> {
        let holders = &self.records.get(lock)?.holders;
        Some(holders.get(number % holders.len().max(1))?.owner)
    }

    /// The owner that waits first.
    pub(super) fn head(&self, lock: &LockKey) -> Option<OwnerId> {
        Some(self.records.get(lock)?.tickets.front()?.owner)
    }

    /// Carries out a batch, each step drawn up when it is its turn; answers the steps and their outcomes.
    pub(super) fn carry_out(
        &mut self,
        client: usize,
        plans: &[StepPlan],
        all: bool,
        scale: &Scale,
    ) -> Vec<(Step, Outcome)> {
        let channel: Arc<str> = client.to_string().into();
        let number = |channel: &str| channel.parse::<usize>().expect("channels are numbers here");
        let (connected, told_apart) = (self.connected, self.told_apart);
        let reachable = |channel: &str| connected[number(channel)] || !told_apart;
        let mut context =
            StepContext { born: self.born, ..StepContext::new(self.now, &channel, &reachable) };
        let mut done = Vec::new();
        if all {
            let steps: Vec<_> = plans.iter().map(|plan| plan.step(scale, self)).collect();
            let record = |step| (step, Record::default());
            let mut records: Vec<_> = steps.iter().map(record).collect();
            for (step, record) in &mut records {
                *record = self.records.get(&step.lock).cloned().unwrap_or_default();
            }
            let outcomes = Record::apply_all(&mut records, &mut context);
            if outcomes.is_ok() {
                let made = records.into_iter().map(|(step, record)| (step.lock.clone(), record));
                self.records.extend(made);
            }
            let outcomes = outcomes.unwrap_or_else(|none| none);
            done = steps.iter().cloned().zip(outcomes).collect();
        }
        for plan in plans.iter().filter(|_| !all) {
            let step = plan.step(scale, self);
            let record = self.records.entry(step.lock.clone()).or_default();
            let outcome = record.apply(&step, &mut context);
            done.push((step, outcome));
        }
        for (channel, notice) in context.notices {
            self.told[number(&channel)].push(notice);
        }
        done
    }

    /// Somebody deletes the lock behind everybody's back.
    pub(super) fn vanish(&mut self, lock: &LockKey) {
        if let Some(record) = self.records.get_mut(lock)
            && !record.holders.is_empty()
        {
            record.holders.clear();
            record.open_since = None;
        }
    }
}
