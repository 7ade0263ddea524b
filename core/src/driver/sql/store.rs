//! The table as a store of records and of cells.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use url::Url;

use super::cell::{self, Exchange};
use super::dialect::{AddressOf, Dialect, each};
use super::fault::Fault;
use super::foreign;
use super::foreign_rows;
use super::link::Link;
use super::own_table;
use super::plain::plain;
use super::records::{Replace, load, names};
use super::statement::{Statement, column, name};
use super::transaction::carry_out;
use crate::driver::recorded::{Loaded, Outbox, RecordStore, Recorded};
use crate::error::Result;
use crate::options::Options;
use crate::port::{
    Answer, Capabilities, CellKey, CellStore, Cells, Change, Failure, Fence, LockKey, Look,
    NoticeSink, RuntimeHandle, Step, Swap,
};

/// One client's view of the locks in a table of a database. [`Recorded`] makes a store of locks of it.
pub struct SqlStore<D: Dialect>(Arc<Link<D>>);

impl<D: Dialect> fmt::Debug for SqlStore<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let address = &self.0.address;
        f.debug_struct("SqlStore").field("address", address).finish_non_exhaustive()
    }
}

impl<D: Dialect> SqlStore<D> {
    /// Connects to the first server that takes writes of `scheme://user[:password]@host[:port]/database`. `others` are the hosts behind the
    /// first, which a URL cannot hold.
    pub async fn connect(
        url: &Url,
        others: &[String],
        options: &Options,
        runtime: RuntimeHandle,
    ) -> Result<Recorded<Self>> {
        Link::open(url, others, options, runtime).await.map(Self).map(Recorded::new)
    }

    /// Refuses a URL that names no server, without a connection.
    pub(crate) fn check(url: &Url, others: &[String]) -> Result<()> {
        AddressOf::<D>::read(url, others, D::RULES).map(drop)
    }
}

impl<D: Dialect> RecordStore for SqlStore<D> {
    fn capabilities(&self) -> Capabilities {
        Capabilities::new(D::NAME, Fence::ClockBounded)
            .with_dialects(&["shedlock", "spring"])
            .with_own_tables()
            .with_guarantees(self.0.dialect.guarantees())
    }

    fn warning(&self) -> Option<&'static str> {
        self.0.dialect.warning()
    }

    fn is_alone(lock: &LockKey) -> bool {
        foreign::is_foreign(lock)
    }

    fn refusal(step: &Step) -> Option<Failure> {
        foreign::refusal(step)
    }

    fn channel(&self) -> Arc<str> {
        self.0.channel.clone()
    }

    async fn plain(&self, steps: &[&Step]) -> Vec<Option<Answer>> {
        plain(&self.0, steps).await
    }

    async fn look(&self, locks: Vec<LockKey>) -> Result<(Vec<Loaded>, u64), Failure> {
        let look = || async {
            let answer = self.0.ask(each(&self.0.texts.look, &[names(&locks)]), false).await?;
            let found = foreign_rows::look(&self.0, &locks).await?;
            Ok((load(&answer.all(), &locks), found, answer.clock().map_err(Fault::refused)?))
        };
        foreign::look(look).await.map_err(|fault: Fault| fault.failure)
    }

    async fn transact<T: Send + 'static>(
        &self,
        locks: Vec<LockKey>,
        yields: bool,
        act: impl Fn(&mut [Loaded], u64) -> (T, Outbox) + Send + Sync + 'static,
    ) -> Result<T, Failure> {
        carry_out(&self.0, Replace { locks, yields, act }).await
    }

    async fn listen(&self, sink: NoticeSink) -> Result<()> {
        self.0.listen(sink).await
    }

    async fn names(&self, prefix: &str) -> Result<Vec<LockKey>> {
        let mut locks = BTreeSet::new();
        for first in foreign::row_prefixes(prefix) {
            let asked = Statement::kept(&self.0.texts.names, [name(first)]);
            let answer = self.0.ask(vec![asked], false).await;
            for row in answer.map_err(|fault| fault.failure.error)?.all() {
                let name = column(row, 0, "name")?;
                locks.insert(foreign::lock_of_row(name));
            }
        }
        Ok(locks.into_iter().filter(|lock| lock.as_str().starts_with(prefix)).collect())
    }

    fn cells(&self) -> Option<Cells<'_>> {
        Some(Cells::of(self))
    }

    async fn close(&self) {
        self.0.close();
    }
}

impl<D: Dialect> CellStore for SqlStore<D> {
    async fn read(&self, key: &CellKey) -> Result<Look> {
        if key.table.is_none() {
            return cell::look(&self.0, key).await;
        }
        let read = carry_out(&self.0, own_table::Read(key.clone())).await;
        read.map_err(|failure| failure.error)
    }

    async fn compare_and_set(&self, change: &Change) -> Result<Swap, Failure> {
        if change.key.table.is_none() {
            return carry_out(&self.0, Exchange(change.clone())).await;
        }
        carry_out(&self.0, own_table::Replace(change.clone())).await
    }
}

impl<D: Dialect> Drop for SqlStore<D> {
    fn drop(&mut self) {
        self.0.close();
    }
}
