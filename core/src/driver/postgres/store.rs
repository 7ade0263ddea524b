//! The table as a store of records and of cells.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use futures_util::future::try_join_all;
use url::Url;

use super::address::Address;
use super::cell;
use super::foreign::rows as foreign_rows;
use super::guarantees;
use super::link::Link;
use super::own_table;
use super::plain::Statements;
use super::row;
use crate::driver::cell::row_name;
use crate::driver::recorded::{Loaded, RecordStore, Recorded, Told};
use crate::driver::sql::cell::Exchange;
use crate::driver::sql::fault::Fault;
use crate::driver::sql::foreign;
use crate::driver::sql::plain::plain;
use crate::driver::sql::replace::Replace;
use crate::driver::sql::transaction::{carry_out, within_step};
use crate::error::Result;
use crate::options::{Durability, Options};
use crate::port::{
    Answer, Capabilities, CellKey, CellStore, Cells, Change, Failure, Fence, LockKey, Look,
    NoticeSink, RuntimeHandle, Step, Swap,
};

/// One client's view of the locks in a PostgreSQL database. [`Recorded`] makes a store of locks of it.
pub struct PostgresStore {
    link: Arc<Link>,
    durability: Durability,
}

impl fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let address = &self.link.address;
        f.debug_struct("PostgresStore").field("address", address).finish_non_exhaustive()
    }
}

impl PostgresStore {
    /// Connects to the first server that takes writes of `postgres://user[:password]@host[:port]/database`. `others` are the hosts
    /// behind the first, which a URL cannot hold.
    pub async fn connect(
        url: &Url,
        others: &[String],
        options: &Options,
        runtime: RuntimeHandle,
    ) -> Result<Recorded<Self>> {
        let address = Address::parse(url, others, options)?;
        let link = Link::connect(address, options, runtime).await?;
        let store = Self { link, durability: options.durability };
        // What a transaction needs is there too, or connecting says what is wrong.
        let live = store.link.open_several().await?;
        store.link.put_back(live);
        Ok(Recorded::new(store))
    }

    /// Refuses a URL that names no server, without a connection.
    pub(crate) fn check(url: &Url, others: &[String]) -> Result<()> {
        Address::read(url, others).map(drop)
    }
}

impl RecordStore for PostgresStore {
    fn capabilities(&self) -> Capabilities {
        let guarantees = match self.durability {
            Durability::Durable => guarantees::DURABLE,
            Durability::Relaxed => guarantees::RELAXED,
        };
        Capabilities::new("postgres", Fence::ClockBounded)
            .with_dialects(&["shedlock", "spring"])
            .with_own_tables()
            .with_guarantees(guarantees)
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
        plain(&self.link.known, steps, Statements::of(&self.link)).await
    }

    async fn look(&self, locks: Vec<LockKey>) -> Result<(Vec<Loaded>, u64), Failure> {
        let live = self.link.single().await.map_err(Failure::refused)?;
        let names: Vec<_> = locks.iter().map(foreign::row_name).collect();
        let look = || async {
            let asked = async { live.client.query(&live.statements.look, &[&names]).await };
            let rows = self.link.ask(&live, asked, false).await?;
            let found = foreign_rows(&live.client, &self.link.address, &locks, false);
            let found = within_step(&*self.link, found).await?;
            let (records, now) = row::load(&rows, locks.clone());
            Ok((records, found, now))
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
        self.link.listen(sink).await
    }

    async fn names(&self, prefix: &str) -> Result<Vec<LockKey>> {
        let live = self.link.single().await?;
        let prefixes = foreign::row_prefixes(prefix);
        let ask =
            async |prefix: &String| live.client.query(&live.statements.names, &[prefix]).await;
        let asked = try_join_all(prefixes.iter().map(ask));
        let rows = self.link.ask(&live, asked, false).await.map_err(|fault| fault.failure.error)?;
        let name = |row| row::column::<&str>(row, 0, "name").map(foreign::lock_of_row);
        let locks: Result<BTreeSet<LockKey>> = rows.iter().flatten().map(name).collect();
        Ok(locks?.into_iter().filter(|lock| lock.as_str().starts_with(prefix)).collect())
    }

    fn cells(&self) -> Option<Cells<'_>> {
        Some(Cells::of(self))
    }

    async fn close(&self) {
        self.link.close();
    }
}

impl CellStore for PostgresStore {
    async fn read(&self, key: &CellKey) -> Result<Look> {
        if key.table.is_some() {
            let read = carry_out(&self.link, own_table::Read(key.clone())).await;
            return read.map_err(|failure| failure.error);
        }
        let live = self.link.single().await?;
        let name = row_name(key);
        let asked = async { live.client.query_one(&live.statements.cell_look, &[&name]).await };
        let row = self.link.ask(&live, asked, false).await.map_err(|fault| fault.failure.error)?;
        cell::look(&row, key)
    }

    async fn compare_and_set(&self, change: &Change) -> Result<Swap, Failure> {
        if change.key.table.is_some() {
            return carry_out(&self.link, own_table::Replace(change.clone())).await;
        }
        carry_out(&self.link, Exchange(change.clone())).await
    }
}

impl Drop for PostgresStore {
    fn drop(&mut self) {
        self.link.close();
    }
}

fn failure(fault: Fault) -> Failure {
    fault.failure
}
