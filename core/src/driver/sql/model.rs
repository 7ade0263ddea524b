//! Steps on records that were read: the model runs in the client, between the reading of a row and its writing.

use std::sync::Arc;

use crate::driver::record::{Record, StepContext};
use crate::error::Result;
use crate::port::{Answer, Failure, LockKey, Notice, Step};

/// The record of one lock, or why it cannot be read. The other locks are not concerned.
#[derive(Clone, Debug)]
pub(in crate::driver) struct Loaded {
    /// The lock.
    pub(in crate::driver) lock: LockKey,
    /// Its record.
    pub(in crate::driver) record: Result<Record, Failure>,
}

/// The notices to send once a change is safely stored, each with the channel of the client that gets it.
pub(in crate::driver) type Outbox = Vec<(Arc<str>, Notice)>;

/// The locks of these steps, each once, in order.
pub(super) fn locks(steps: &[Step]) -> Vec<LockKey> {
    let mut locks: Vec<_> = steps.iter().map(|step| step.lock.clone()).collect();
    locks.sort_unstable();
    locks.dedup();
    locks
}

/// The same failure for so many steps.
pub(super) fn alike(count: usize, failure: &Failure) -> Vec<Answer> {
    (0..count).map(|_| Err(failure.clone())).collect()
}

/// Carries steps out, one after the other. Whether a client hears cannot be told from its records, so all count as reachable.
pub(super) fn apply(
    steps: &[Step],
    records: &mut [Loaded],
    now: u64,
    channel: &Arc<str>,
) -> (Vec<Answer>, Outbox) {
    let mut context = StepContext::new(now, channel, &|_| true);
    let answer = |step: &Step| {
        let found = records.iter_mut().find(|loaded| loaded.lock == step.lock);
        let loaded = found.expect("the locks of all steps are loaded");
        match &mut loaded.record {
            Ok(record) => record.answer(step, &mut context),
            Err(failure) => Err(failure.clone()),
        }
    };
    let answers = steps.iter().map(answer).collect();
    (answers, context.notices)
}

/// Carries Takes of different locks out as one: all are granted, or no record is changed.
pub(super) fn apply_all(
    steps: &[Step],
    records: &mut [Loaded],
    now: u64,
    channel: &Arc<str>,
) -> (Vec<Answer>, Outbox) {
    let mut context = StepContext::new(now, channel, &|_| true);
    let unread = records.iter().find_map(|loaded| loaded.record.as_ref().err().cloned());
    if let Some(failure) = unread {
        return (alike(steps.len(), &failure), context.notices);
    }
    let mut changed: Vec<(&Step, Record)> = Vec::with_capacity(steps.len());
    for step in steps {
        let found = records.iter().find(|loaded| loaded.lock == step.lock);
        let record = found.and_then(|loaded| loaded.record.as_ref().ok());
        changed.push((step, record.expect("the locks of all steps are loaded").clone()));
    }
    let (answers, granted) = Record::answer_all(&mut changed, &mut context);
    for (step, record) in changed.into_iter().filter(|_| granted) {
        if let Some(loaded) = records.iter_mut().find(|loaded| loaded.lock == step.lock) {
            loaded.record = Ok(record);
        }
    }
    (answers, context.notices)
}
