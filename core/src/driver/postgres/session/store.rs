//! A database as a store of sessions that lock.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use url::Url;

use super::connection::Connection;
use super::way::{Way, known};
use crate::driver::postgres::connection::{Connection as Live, Hear, Heard, setup};
use crate::driver::postgres::dialect::{Postgres, RULES};
use crate::driver::postgres::fault::{judge, no_tables, state};
use crate::driver::postgres::pooler::Pooling;
use crate::driver::postgres::schema;
use crate::driver::sql::address::Address;
use crate::driver::sql::dialect::AddressOf;
use crate::driver::sql::fault::{Fault, absent};
use crate::driver::sql::room::when_there_is_room;
use crate::driver::sql::statement::Statement;
use crate::driver::sql::tables::Tables;
use crate::driver::tls::Tls;
use crate::driver::within::within;
use crate::error::{Error, Result};
use crate::options::{Durability, Options};
use crate::port::{
    Capabilities, EndSink, Failure, Fence, LockKey, LockState, Mode, RuntimeHandle, SessionStore,
};

/// The longest ttl that the server's settings for a silent session can hold.
const LONGEST_TTL: Duration = Duration::from_millis(i32::MAX as u64);

/// One client's view of the locks of one way in a PostgreSQL database. [`Sessions`](crate::Sessions) makes a store of locks of it.
pub struct SessionLocks<W> {
    way: Arc<W>,
    address: Arc<AddressOf<Postgres>>,
    runtime: RuntimeHandle,
    setup: String,
    tables: Tables,
    create: bool,
    connect_timeout: Duration,
    pooling: Pooling,
}

impl<W: Way> SessionLocks<W> {
    /// The database of `postgres+advisory://user[:password]@host[:port]/database`, or `postgres+row`. `others` are the hosts behind the
    /// first, which a URL cannot hold. Nothing is connected yet.
    pub fn new(
        url: &Url,
        others: &[String],
        options: &Options,
        runtime: RuntimeHandle,
    ) -> Result<Self> {
        if options.durability == Durability::Relaxed {
            let message = "locks of a session are not written to the disk, and their tokens have to be; leave `durability` out";
            return Err(Error::invalid("durability", message));
        }
        if options.ttl > LONGEST_TTL {
            let message = "the server ends a session that was silent for 24 days at most; take a shorter `ttl`";
            return Err(Error::invalid("ttl", message));
        }
        let tables = Tables::new(&options.table, '"')?;
        let way = Arc::new(W::new(options, &tables)?);
        let address = Arc::new(Address::parse(url, others, options, &RULES, Tls::new)?);
        let (create, connect_timeout) = (options.create, options.connect_timeout);
        let (setup, pooling) = (setup(options)?, Pooling::default());
        Ok(Self { way, address, runtime, setup, tables, create, connect_timeout, pooling })
    }

    async fn open(&self, ttl: Duration, ended: EndSink) -> Result<Connection<W>> {
        let ttl = ttl.as_millis();
        // A session that waits is not idle; it ends when it is told of the grant, or when the server sees that its client has gone.
        let setup = format!(
            "SET idle_session_timeout = {ttl}; SET idle_in_transaction_session_timeout = {ttl}; SET tcp_user_timeout = {ttl};
             SET statement_timeout = 0; SET lock_timeout = 0;
             SELECT set_config('transaction_timeout', '0', false) WHERE current_setting('server_version_num')::integer >= 170000;
             SELECT set_config('client_connection_check_interval', '1000', false) WHERE version() ~* 'linux|darwin|bsd';
             {}",
            self.setup
        );
        let over = Arc::new(AtomicBool::new(false));
        let told = over.clone();
        let hear: Hear = Arc::new(move |heard| {
            if let Heard::End = heard {
                told.store(true, Ordering::Release);
                ended();
            }
        });
        let (runtime, limit) = (&self.runtime, self.connect_timeout);
        self.pooling.refuse(&self.address, runtime, limit).await?;
        let open = || Live::open_first(&self.address, &setup, Some(hear.clone()), runtime, limit);
        let (live, host) = when_there_is_room(runtime, limit, open).await?;
        let error = |fault: Fault| fault.failure.error;
        let found = match self.way.prepare(&live).await.map_err(error) {
            Err(error) if self.create && is_missing(&error) => {
                let created = schema::create(&live.client, &self.tables).await;
                created.map_err(|error| judge(&*self.address, &error, false).failure.error)?;
                self.way.prepare(&live).await.map_err(|fault| fault.failure.error)
            }
            found => found,
        };
        let found = found.map_err(|error| if is_missing(&error) { no_tables() } else { error })?;
        let advance = [Statement::bare(self.way.advance())];
        live.send(&advance, false, known(&*self.way)).await.map_err(error)?;
        let place = (self.address.clone(), host);
        let (way, runtime) = (self.way.clone(), self.runtime.clone());
        let session = Connection::new(way, place, runtime, live, found, over).await;
        session.map_err(|failure| failure.error)
    }

    async fn within_connect<T>(&self, work: impl Future<Output = Result<T>>) -> Result<T> {
        let late = || Err(absent(&*self.address, "it took too long"));
        within(&self.runtime, self.connect_timeout, work).await.unwrap_or_else(late)
    }
}

/// Whether a table or function of the migration is not there.
fn is_missing(error: &Error) -> bool {
    matches!(state(error), "42P01" | "42883")
}

impl<W: Way> SessionStore for SessionLocks<W> {
    type Session = Connection<W>;

    fn capabilities(&self) -> Capabilities {
        Capabilities::new("postgres", Fence::ClockBounded)
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
