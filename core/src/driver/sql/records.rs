//! Transactions on the records of locks, and how a record's row is read and written.

use std::sync::Arc;
use std::time::Duration;

use super::dialect::{Connection, Dialect};
use super::fault::Fault;
use super::foreign::{self, ForeignChange, ForeignRows, row_name};
use super::foreign_rows;
use super::link::Link;
use super::model::{Loaded, Outbox};
use super::row;
use super::statement::{Row, Statement, Value, column, name};
use super::transaction::{Progress, Work};
use crate::driver::record::Record;
use crate::error::Result;
use crate::port::{Failure, LockKey, Notice};

/// Locks records, has `act` change them, and writes back what is different; tells when that is committed.
pub(super) struct Replace<A> {
    pub(super) locks: Vec<LockKey>,
    /// Whether it is tried again later if a row is locked and many may wait.
    pub(super) yields: bool,
    pub(super) act: A,
}

/// The result of a [`Replace`], not yet written.
struct Replaced<T> {
    done: T,
    records: Vec<Loaded>,
    before: Vec<Loaded>,
    /// For this client.
    own: Vec<Notice>,
    others: Outbox,
    /// The changes to write into other libraries' rows.
    foreign: Vec<(LockKey, ForeignChange)>,
}

impl<T, A: Fn(&mut [Loaded], u64) -> (T, Outbox)> Replace<A> {
    /// Has the records changed at this moment. `foreign` are the rows of other libraries.
    fn apply(
        &self,
        before: Vec<Loaded>,
        mut foreign: ForeignRows,
        now: u64,
        own_channel: &Arc<str>,
    ) -> Replaced<T> {
        let mut records = before.clone();
        foreign.enter(&mut records, now);
        let (done, outbox) = (self.act)(&mut records, now);
        let foreign = foreign.leave(&mut records);
        let (own, others): (Outbox, Outbox) =
            outbox.into_iter().partition(|(channel, _)| channel == own_channel);
        let own = own.into_iter().map(|(_, notice)| notice).collect();
        Replaced { done, records, before, own, others, foreign }
    }
}

impl<T> Replaced<T> {
    /// The records to write: those that were changed.
    fn different(&self) -> Vec<(&LockKey, &Record)> {
        let pairs = self.before.iter().zip(&self.records);
        let different = pairs.filter_map(|(before, after)| match (&before.record, &after.record) {
            (Ok(before), Ok(record)) if before != record => Some((&after.lock, record)),
            _ => None,
        });
        different.collect()
    }

    /// Each lock, and how many wait for it.
    fn waiting(&self) -> impl Iterator<Item = (&LockKey, usize)> {
        let waiting =
            |loaded: &Loaded| loaded.record.as_ref().map_or(0, |record| record.tickets.len());
        self.records.iter().map(move |loaded| (&loaded.lock, waiting(loaded)))
    }
}

impl<D, T, A> Work<D> for Replace<A>
where
    D: Dialect,
    T: Send + 'static,
    A: Fn(&mut [Loaded], u64) -> (T, Outbox) + Send + Sync + 'static,
{
    type Done = T;

    fn patience(&self, link: &Link<D>) -> Duration {
        if self.locks.iter().any(foreign::is_foreign) {
            link.timeout.min(foreign::PATIENCE)
        } else {
            link.timeout
        }
    }

    async fn attempt(
        &self,
        link: &Link<D>,
        connection: &mut D::Connection,
        progress: &Progress,
    ) -> Result<T, Fault> {
        let (Self { locks, .. }, texts) = (self, &link.texts);
        let [begin, commit, roll_back] = connection.transaction();
        // In a short line everybody keeps its place.
        let yields = self.yields && !link.known.has_short_lines(locks);
        let text = if yields { &texts.lock_at_once } else { &texts.lock };
        let lock = || Statement::kept(text, [names(locks)]);
        let mut asked = begin;
        asked.push(lock());
        let mut answer = connection.ask(&asked, false).await?;
        if answer.all().count() < locks.len() {
            let insert = |lock| Statement::kept(&texts.insert, [name(row_name(lock))]);
            let asked: Vec<_> = locks.iter().map(insert).chain([lock()]).collect();
            answer = connection.ask(&asked, false).await?;
            if answer.all().count() < locks.len() {
                return Err(Fault::vanished());
            }
        }
        let now = answer.clock().map_err(Fault::refused)?;
        let rows = answer.rows();
        let records = load(&rows.iter(), locks);
        D::receive(link, locks, &rows);
        let foreign = foreign_rows::locked::<D>(connection, locks).await?;
        let replaced = self.apply(records, foreign, now, &link.channel);
        foreign_rows::write::<D>(connection, &replaced.foreign).await?;
        let different = replaced.different();
        let (beside, notifications) = D::notify(link, &rows, &different, &replaced.others);
        let is_changed = !(different.is_empty() && replaced.foreign.is_empty());
        let written = different.iter().zip(beside).map(|((lock, record), beside)| {
            let values = row::values(lock, record).into_iter().chain(beside);
            Statement::kept(&texts.store, values.collect::<Vec<_>>())
        });
        let end = if is_changed || !notifications.is_empty() { commit } else { roll_back };
        let asked: Vec<_> = written.chain(notifications).chain(end).collect();
        progress.decides();
        // What was not written was not committed either, if the server says so.
        connection.ask(&asked, true).await?;
        link.known.note(replaced.waiting());
        link.tell_self(replaced.own);
        Ok(replaced.done)
    }
}

/// The names of the rows of these locks.
pub(in crate::driver) fn names(locks: &[LockKey]) -> Value {
    Value::Names(locks.iter().map(|lock| row_name(lock).into_owned()).collect())
}

/// The records of these locks among the rows.
pub(in crate::driver) fn load<'a>(
    rows: &(impl Iterator<Item = &'a Row> + Clone),
    locks: &[LockKey],
) -> Vec<Loaded> {
    let load = |lock: &LockKey| {
        let record = match of_lock(rows.clone(), lock) {
            None => Ok(Record::default()),
            Some(row) => {
                row::read(row).map_err(|error| Failure::refused(error.with("name", lock.as_str())))
            }
        };
        Loaded { lock: lock.clone(), record }
    };
    locks.iter().map(load).collect()
}

/// The row of a lock.
pub(in crate::driver) fn of_lock<'a>(
    mut rows: impl Iterator<Item = &'a Row>,
    lock: &LockKey,
) -> Option<&'a Row> {
    let wanted = row_name(lock);
    rows.find(|row| column::<&str>(row, 0, "name").is_ok_and(|name| name == wanted))
}
