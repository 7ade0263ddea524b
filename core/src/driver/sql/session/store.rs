//! A database as a store of sessions that lock.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use url::Url;

use super::connection::{Connection, number};
use super::{SessionDialect, Way, Wire};
use crate::driver::sql::address::Address;
use crate::driver::sql::dialect::Tables;
use crate::driver::sql::dialect::{AddressOf, Connection as _};
use crate::driver::sql::fault::{Fault, absent};
use crate::driver::sql::statement::Statement;
use crate::driver::within::within;
use crate::error::Result;
use crate::options::Options;
use crate::port::{
    Capabilities, EndSink, Failure, Fence, LockKey, LockState, Mode, RuntimeHandle, SessionStore,
};

/// One client's view of the locks of one way in a database. [`Sessions`](crate::Sessions) makes a store of locks of it.
pub struct SessionLocks<D: SessionDialect, W> {
    #[cfg_attr(not(feature = "postgres"), allow(dead_code))] // MySQL has no settings of its own.
    pub(in crate::driver) dialect: D,
    way: Arc<W>,
    pub(in crate::driver) address: Arc<AddressOf<D>>,
    pub(in crate::driver) runtime: RuntimeHandle,
    tables: Tables,
    create: bool,
    pub(in crate::driver) connect_timeout: Duration,
}

impl<D: SessionDialect, W> fmt::Debug for SessionLocks<D, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionLocks").field("address", &self.address).finish_non_exhaustive()
    }
}

impl<D: SessionDialect, W: Way<D>> SessionLocks<D, W> {
    /// The database of `scheme://user[:password]@host[:port]/database`. `others` are the hosts behind the first, which a URL cannot hold.
    /// Nothing is connected yet.
    pub fn new(
        url: &Url,
        others: &[String],
        options: &Options,
        runtime: RuntimeHandle,
    ) -> Result<Self> {
        D::check(options)?;
        let tables = Tables::new(&options.table, D::MARK)?;
        let way = Arc::new(W::new(options, &tables)?);
        let address = Arc::new(Address::parse(url, others, options, D::RULES, D::tls)?);
        let (create, connect_timeout) = (options.create, options.connect_timeout);
        let dialect = D::new(options)?;
        Ok(Self { dialect, way, address, runtime, tables, create, connect_timeout })
    }

    async fn open(&self, ttl: Duration, ended: EndSink) -> Result<Connection<D, W>> {
        let (mut connection, host, watch) = D::open(self, ttl, &ended).await?;
        let found = match self.find(&mut connection).await {
            Err(fault) if self.create && D::missing(&fault.failure.error).is_some() => {
                let created = D::create(&mut connection, &self.tables).await;
                created.map_err(|fault| fault.failure.error)?;
                self.find(&mut connection).await
            }
            found => found,
        };
        let explained = |fault: Fault| {
            let error = fault.failure.error;
            D::missing(&error).unwrap_or(error)
        };
        let (found, number) = found.map_err(explained)?;
        let (place, known) = ((self.address.clone(), host), D::known(self.way.on_own_table()));
        let runtime = self.runtime.clone();
        let wire = D::wire(connection, number, place, watch, known, runtime.clone(), ended);
        Ok(Connection::new(self.way.clone(), wire, number, found, runtime))
    }

    /// Looks at what there is, makes sure that tokens rise, and answers the number of the session.
    async fn find(&self, connection: &mut D::Connection) -> Result<(W::Found, i64), Fault> {
        let found = self.way.find(connection).await?;
        D::advance(connection, &self.tables, W::ROWS).await?;
        let answer = connection.ask(&[Statement::kept(&D::BEAT.into(), [])], false).await?;
        Ok((found, number(answer.row()).map_err(Fault::refused)?))
    }

    async fn within_connect<T>(&self, work: impl Future<Output = Result<T>>) -> Result<T> {
        let late = || Err(absent(&*self.address, "it took too long"));
        within(&self.runtime, self.connect_timeout, work).await.unwrap_or_else(late)
    }
}

impl<D: SessionDialect, W: Way<D>> SessionStore for SessionLocks<D, W> {
    type Session = Connection<D, W>;

    fn capabilities(&self) -> Capabilities {
        Capabilities::new(D::NAME, Fence::ClockBounded)
            .with_sessions()
            .with_guarantees(D::GUARANTEES[usize::from(W::ROWS)])
    }

    fn refusal(&self, mode: Mode) -> Option<&'static str> {
        D::refusal(mode, W::ROWS)
    }

    fn holds_several(&self) -> bool {
        !W::ROWS
    }

    async fn connect(&self, ttl: Duration, ended: EndSink) -> Result<Connection<D, W>> {
        self.within_connect(self.open(ttl, ended)).await
    }

    async fn state(&self, of: &Connection<D, W>, lock: &LockKey) -> Result<LockState, Failure> {
        let answer =
            of.wire.ask(self.way.look(of, lock), false).await.map_err(|fault| fault.failure)?;
        D::state(&answer).map_err(Failure::refused)
    }

    async fn names(&self, of: &Connection<D, W>, prefix: &str) -> Result<Vec<LockKey>> {
        self.way.names(of, prefix).await
    }
}
