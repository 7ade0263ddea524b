//! A database as a store of sessions that lock.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use url::Url;

use super::connection::{Connection, Prepared};
use super::way::{Way, judge};
use crate::driver::postgres::address::Address;
use crate::driver::postgres::fault::no_tables;
use crate::driver::postgres::live::{Hear, Heard, open_first};
use crate::driver::postgres::pooler::Pooling;
use crate::driver::postgres::{schema, setup};
use crate::driver::sql::fault::absent;
use crate::driver::sql::room::when_there_is_room;
use crate::driver::sql::tables::Tables;
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
    address: Arc<Address>,
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
        let address = Arc::new(Address::parse(url, others, options)?);
        let (create, connect_timeout) = (options.create, options.connect_timeout);
        let (setup, pooling) = (setup::setup(options)?, Pooling::default());
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
        let open = || open_first(&self.address, &setup, Some(hear.clone()), runtime, limit);
        let (live, host) = when_there_is_room(runtime, limit, open).await?;
        let refusal = |error: tokio_postgres::Error| self.refusal(&error);
        let beat = live.client.prepare("SELECT pg_backend_pid()").await.map_err(refusal)?;
        let prepared = match self.way.prepare(&live.client, &refusal).await {
            Err(error) if self.create && is_missing(&error) => {
                schema::create(&live.client, &self.tables).await.map_err(refusal)?;
                self.way.prepare(&live.client, &refusal).await
            }
            prepared => prepared,
        };
        let unprepared = |error| if is_missing(&error) { no_tables() } else { error };
        let locking = prepared.map_err(unprepared)?;
        let live = live.with(Prepared { beat, locking });
        live.client.batch_execute(&self.way.advance()).await.map_err(refusal)?;
        let place = (self.address.clone(), host);
        let (way, runtime) = (self.way.clone(), self.runtime.clone());
        let session = Connection::new(way, place, runtime, live, over).await;
        session.map_err(|failure| failure.error)
    }

    fn refusal(&self, error: &tokio_postgres::Error) -> Error {
        judge(&*self.way, &self.address, error, false).error
    }

    async fn within_connect<T>(&self, work: impl Future<Output = Result<T>>) -> Result<T> {
        let late = || Err(absent(&*self.address, "it took too long"));
        within(&self.runtime, self.connect_timeout, work).await.unwrap_or_else(late)
    }
}

/// Whether a table or function of the migration is not there.
fn is_missing(error: &Error) -> bool {
    error.fields().get("sqlstate").is_some_and(|state| matches!(state.as_str(), "42P01" | "42883"))
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
