//! The table as a store of records and of cells.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use url::Url;

use super::address::Address;
use super::foreign::rows;
use super::guarantees;
use super::link::Link;
use super::live::Statement;
use super::row::{self, column};
use super::{cell, own_table, statement};
use crate::driver::cell::row_name;
use crate::driver::recorded::{Loaded, RecordStore, Recorded, Told};
use crate::driver::sql::cell::Exchange;
use crate::driver::sql::fault::{Fault, bad_column};
use crate::driver::sql::foreign::{self, ForeignRows};
use crate::driver::sql::plain::plain;
use crate::driver::sql::replace::Replace;
use crate::driver::sql::transaction::{carry_out, within_step};
use crate::error::{Error, Result};
use crate::options::{Durability, Options};
use crate::port::{
    Answer, Capabilities, CellKey, CellStore, Cells, Change, Failure, Fence, LockKey, Look,
    NoticeSink, RuntimeHandle, Step, Swap,
};

/// One client's view of the locks in a MySQL or MariaDB database. [`Recorded`] makes a store of locks of it.
pub struct MysqlStore {
    link: Arc<Link>,
    /// Whether the server writes its log at each commit.
    durable: bool,
}

impl fmt::Debug for MysqlStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let address = &self.link.address;
        f.debug_struct("MysqlStore").field("address", address).finish_non_exhaustive()
    }
}

impl MysqlStore {
    /// Connects to the first server that takes writes of `mysql://user[:password]@host[:port]/database`. `others` are the hosts
    /// behind the first, which a URL cannot hold.
    pub async fn connect(
        url: &Url,
        others: &[String],
        options: &Options,
        runtime: RuntimeHandle,
    ) -> Result<Recorded<Self>> {
        check_durability(options)?;
        let address = Address::parse(url, others, options)?;
        let (link, durable) = Link::connect(address, options, runtime).await?;
        Ok(Recorded::new(Self { link, durable }))
    }

    /// Refuses a URL that names no server, without a connection.
    pub(crate) fn check(url: &Url, others: &[String]) -> Result<()> {
        Address::read(url, others).map(drop)
    }
}

impl MysqlStore {
    /// The rows of other libraries as they are.
    async fn foreign_rows(&self, locks: &[LockKey]) -> Result<ForeignRows, Fault> {
        if !locks.iter().any(foreign::is_foreign) {
            return Ok(ForeignRows::default());
        }
        let mut live = self.link.take().await.map_err(Fault::refused)?;
        let found = rows(&mut live.conn, &self.link.address, locks, false);
        // A connection on which it failed may be in another time zone.
        let found = within_step(&*self.link, found).await?;
        self.link.put_back(live);
        Ok(found)
    }
}

impl RecordStore for MysqlStore {
    fn capabilities(&self) -> Capabilities {
        let guarantees = if self.durable { guarantees::DURABLE } else { guarantees::RELAXED };
        Capabilities::new("mysql", Fence::ClockBounded)
            .with_dialects(&["shedlock", "spring"])
            .with_own_tables()
            .with_guarantees(guarantees)
    }

    fn warning(&self) -> Option<&'static str> {
        (!self.durable).then_some(
            "the server does not write its log at each commit (`innodb_flush_log_at_trx_commit`): a crash may undo the last grants",
        )
    }

    fn is_alone(lock: &LockKey) -> bool {
        foreign::is_foreign(lock)
    }

    fn refusal(step: &Step) -> Option<Failure> {
        foreign::refusal(step)
    }

    fn channel(&self) -> Arc<str> {
        self.link.channel.clone()
    }

    async fn plain(&self, steps: &[&Step]) -> Vec<Option<Answer>> {
        plain(&self.link.known, steps, async { Ok(&*self.link) }).await
    }

    async fn look(&self, locks: Vec<LockKey>) -> Result<(Vec<Loaded>, u64), Failure> {
        let look = || async {
            let asked = Statement::Text(statement::look(&self.link.tables, &locks));
            let mut sets = self.link.ask(asked, false).await?.sets;
            let clock = sets.pop().unwrap_or_default();
            let now = clock.first().ok_or_else(|| bad_column("now"));
            let now = now.and_then(|row| column(row, 0, "now")).map_err(Fault::refused)?;
            let records = row::load(&sets.pop().unwrap_or_default(), &locks).records;
            Ok((records, self.foreign_rows(&locks).await?, now))
        };
        foreign::look(look).await.map_err(failure)
    }

    async fn transact<T: Send + 'static>(
        &self,
        locks: Vec<LockKey>,
        act: impl Fn(&mut [Loaded], u64) -> (T, Told) + Send + Sync + 'static,
    ) -> Result<T, Failure> {
        carry_out(&self.link, Replace { locks, act }).await
    }

    async fn listen(&self, sink: NoticeSink) -> Result<()> {
        self.link.listen(sink);
        Ok(())
    }

    async fn names(&self, prefix: &str) -> Result<Vec<LockKey>> {
        let mut locks = BTreeSet::new();
        for first in foreign::row_prefixes(prefix) {
            let asked = Statement::Text(statement::remembered(&self.link.tables, &first));
            let answered =
                self.link.ask(asked, false).await.map_err(|fault| fault.failure.error)?;
            for row in answered.rows() {
                let name = column(&row, 0, "name")?;
                let name = String::from_utf8(name).map_err(|_| bad_column("name"))?;
                let lock = foreign::lock_of_row(&name);
                if lock.as_str().starts_with(prefix) {
                    locks.insert(lock);
                }
            }
        }
        Ok(locks.into_iter().collect())
    }

    fn cells(&self) -> Option<Cells<'_>> {
        Some(Cells::of(self))
    }

    async fn close(&self) {
        self.link.close();
    }
}

impl CellStore for MysqlStore {
    async fn read(&self, key: &CellKey) -> Result<Look> {
        if key.table.is_some() {
            let read = carry_out(&self.link, own_table::Read(key.clone())).await;
            return read.map_err(|failure| failure.error);
        }
        let asked = Statement::Text(statement::cell_look(&self.link.tables, &row_name(key)));
        let answered = self.link.ask(asked, false).await.map_err(|fault| fault.failure.error)?;
        let [rows, clock] = &answered.sets[..] else { return Err(bad_column("now")) };
        cell::look(rows.first(), clock.first(), key)
    }

    async fn compare_and_set(&self, change: &Change) -> Result<Swap, Failure> {
        if change.key.table.is_some() {
            return carry_out(&self.link, own_table::Replace(change.clone())).await;
        }
        carry_out(&self.link, Exchange(change.clone())).await
    }
}

impl Drop for MysqlStore {
    fn drop(&mut self) {
        self.link.close();
    }
}

/// Refuses what would change nothing.
pub(super) fn check_durability(options: &Options) -> Result<()> {
    if options.durability == Durability::Relaxed {
        let message = "MySQL and MariaDB have this for the whole server, not for a session; leave `durability` out, and see `innodb_flush_log_at_trx_commit` there";
        return Err(Error::invalid("durability", message));
    }
    Ok(())
}

fn failure(fault: Fault) -> Failure {
    fault.failure
}
