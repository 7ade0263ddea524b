//! The work of a transaction on locks, but for the statements.

use std::sync::Arc;
use std::time::Duration;

use super::foreign::{self, ForeignChange, ForeignRows};
use crate::driver::record::Record;
use crate::driver::recorded::{Loaded, Told};
use crate::port::{LockKey, Notice};

/// Locks records, has `act` change them, and writes back what is different; tells when that is committed.
pub(in crate::driver) struct Replace<A> {
    pub(in crate::driver) locks: Vec<LockKey>,
    pub(in crate::driver) act: A,
}

/// The result of a [`Replace`], not yet written.
pub(in crate::driver) struct Replaced<T> {
    pub(in crate::driver) done: T,
    pub(in crate::driver) records: Vec<Loaded>,
    before: Vec<Loaded>,
    /// For this client.
    pub(in crate::driver) own: Vec<Notice>,
    pub(in crate::driver) others: Told,
    /// The changes to write into other libraries' rows.
    pub(in crate::driver) foreign: Vec<(LockKey, ForeignChange)>,
}

impl<A> Replace<A> {
    /// How long it may take, of what a step may take.
    pub(in crate::driver) fn patience(&self, step: Duration) -> Duration {
        if self.locks.iter().any(foreign::is_foreign) { step.min(foreign::PATIENCE) } else { step }
    }
}

impl<T, A: Fn(&mut [Loaded], u64) -> (T, Told)> Replace<A> {
    /// Has the records changed at this moment. `foreign` are the rows of other libraries.
    pub(in crate::driver) fn apply(
        &self,
        before: Vec<Loaded>,
        mut foreign: ForeignRows,
        now: u64,
        own_channel: &Arc<str>,
    ) -> Replaced<T> {
        let mut records = before.clone();
        foreign.enter(&mut records, now);
        let (done, told) = (self.act)(&mut records, now);
        let foreign = foreign.leave(&mut records);
        let (own, others): (Told, Told) =
            told.into_iter().partition(|(channel, _)| channel == own_channel);
        let own = own.into_iter().map(|(_, notice)| notice).collect();
        Replaced { done, records, before, own, others, foreign }
    }
}

impl<T> Replaced<T> {
    /// The records to write: those that were changed.
    pub(in crate::driver) fn different(&self) -> Vec<(&LockKey, &Record)> {
        let pairs = self.before.iter().zip(&self.records);
        let different = pairs.filter_map(|(before, after)| match (&before.record, &after.record) {
            (Ok(before), Ok(record)) if before != record => Some((&after.lock, record)),
            _ => None,
        });
        different.collect()
    }

    /// Each lock, and whether anybody waits for it.
    pub(in crate::driver) fn waited_for(&self) -> impl Iterator<Item = (&LockKey, bool)> {
        let waited_for =
            |loaded: &Loaded| loaded.record.as_ref().is_ok_and(|record| !record.tickets.is_empty());
        self.records.iter().map(move |loaded| (&loaded.lock, waited_for(loaded)))
    }
}
