//! A database as a store of sessions that lock.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use url::Url;

use super::connection::Connection;
use super::line::Line;
use super::tokens::Tokens;
use super::way::{Way, numbers};
use crate::driver::mysql::connection::Connection as Live;
use crate::driver::mysql::dialect::{Mysql, RULES, check_durability};
use crate::driver::mysql::fault::number;
use crate::driver::mysql::{schema, tls};
use crate::driver::sql::address::Address;
use crate::driver::sql::dialect::{AddressOf, Connection as _};
use crate::driver::sql::fault::{Fault, absent, bad_column};
use crate::driver::sql::room::when_there_is_room;
use crate::driver::sql::statement::{Statement, column};
use crate::driver::sql::tables::Tables;
use crate::driver::within::within;
use crate::error::{Error, Result};
use crate::options::Options;
use crate::port::{
    Capabilities, EndSink, Failure, Fence, LockKey, LockState, Mode, RuntimeHandle, SessionStore,
};

/// One client's view of the locks of one way in a MySQL or MariaDB database. [`Sessions`](crate::Sessions) makes a store of locks of it.
pub struct SessionLocks<W> {
    way: Arc<W>,
    address: Arc<AddressOf<Mysql>>,
    runtime: RuntimeHandle,
    tables: Tables,
    create: bool,
    connect_timeout: Duration,
}

impl<W> fmt::Debug for SessionLocks<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionLocks").field("address", &self.address).finish_non_exhaustive()
    }
}

impl<W: Way> SessionLocks<W> {
    /// The database of `mysql+getlock://user[:password]@host[:port]/database`, or `mysql+row`. `others` are the hosts behind the
    /// first, which a URL cannot hold. Nothing is connected yet.
    pub fn new(
        url: &Url,
        others: &[String],
        options: &Options,
        runtime: RuntimeHandle,
    ) -> Result<Self> {
        check_durability(options)?;
        let tables = Tables::new(&options.table, '`')?;
        let way = Arc::new(W::new(options, &tables)?);
        let address = Arc::new(Address::parse(url, others, options, &RULES, tls::proof)?);
        let (create, connect_timeout) = (options.create, options.connect_timeout);
        Ok(Self { way, address, runtime, tables, create, connect_timeout })
    }

    async fn open(&self, ttl: Duration, ended: EndSink) -> Result<Connection<W>> {
        let (runtime, limit) = (&self.runtime, self.connect_timeout);
        let open = || Live::open_first(&self.address, runtime, limit);
        let opened = when_there_is_room(runtime, limit, open).await;
        let (mut live, host) = opened?;
        let (known, error) = (numbers(&*self.way), |fault: Fault| fault.failure.error);
        let told =
            live.ask_of(&[Statement::bare(setup(ttl))], false, known).await.map_err(error)?;
        let number = match told.row() {
            Some(row) => column(row, 0, "CONNECTION_ID")?,
            None => return Err(bad_column("CONNECTION_ID")),
        };
        let found = match self.find(&mut live).await {
            Err(fault) if self.create && is_missing(&fault.failure.error) => {
                schema::create(&mut live, &self.tables).await.map_err(error)?;
                self.find(&mut live).await
            }
            found => found,
        };
        let (found, way) = (found.map_err(error)?, self.way.clone());
        let (address, runtime) = (self.address.clone(), self.runtime.clone());
        let line = Line::new(live, address.clone(), known, runtime.clone(), ended);
        Ok(Connection::new(way, (address, host), runtime, number, line, found))
    }

    /// Looks at what there is, and makes sure that tokens rise.
    async fn find(&self, live: &mut Live) -> Result<W::Found, Fault> {
        let tokens = Tokens::of(live.version, &self.tables);
        let found = self.way.find(live, tokens.clone()).await?;
        tokens.advance(live).await.map(|()| found)
    }

    async fn within_connect<T>(&self, work: impl Future<Output = Result<T>>) -> Result<T> {
        let late = || Err(absent(&*self.address, "it took too long"));
        within(&self.runtime, self.connect_timeout, work).await.unwrap_or_else(late)
    }
}

/// A session's first statements: they set when the server ends it; no statement limit ends a wait. The server counts whole seconds.
/// Each kind of server reads one of the comments.
fn setup(ttl: Duration) -> String {
    let silent = whole_seconds(ttl);
    format!(
        "SET SESSION wait_timeout = {silent}, net_read_timeout = {silent}, net_write_timeout = {silent}
             /*M! , max_statement_time = 0, idle_transaction_timeout = 0, idle_readonly_transaction_timeout = 0, idle_write_transaction_timeout = 0 */
             /*!80000 , max_execution_time = 0 */;
         SELECT CONNECTION_ID()"
    )
}

/// The next whole second.
fn whole_seconds(ttl: Duration) -> u64 {
    ttl.as_secs() + u64::from(ttl.subsec_nanos() > 0)
}

/// Whether a table or sequence of the migration is not there.
fn is_missing(error: &Error) -> bool {
    matches!(number(error), "1146" | "4091")
}

impl<W: Way> SessionStore for SessionLocks<W> {
    type Session = Connection<W>;

    fn capabilities(&self) -> Capabilities {
        Capabilities::new("mysql", Fence::ClockBounded)
            .with_sessions()
            .with_guarantees(W::GUARANTEES)
    }

    fn refusal(&self, mode: Mode) -> Option<&'static str> {
        W::refusal(mode)
    }

    fn holds_several(&self) -> bool {
        !W::IN_TRANSACTION
    }

    async fn connect(&self, ttl: Duration, ended: EndSink) -> Result<Connection<W>> {
        self.within_connect(self.open(ttl, ended)).await
    }

    async fn state(&self, of: &Connection<W>, lock: &LockKey) -> Result<LockState, Failure> {
        self.way.look(of, lock).await
    }

    async fn names(&self, of: &Connection<W>, prefix: &str) -> Result<Vec<LockKey>> {
        self.way.names(of, prefix).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_server_waits_no_shorter_than_the_guard_counts() {
        for (millis, seconds) in [(1, 1), (600, 1), (1000, 1), (1001, 2), (10_000, 10)] {
            assert_eq!(whole_seconds(Duration::from_millis(millis)), seconds);
        }
    }
}
