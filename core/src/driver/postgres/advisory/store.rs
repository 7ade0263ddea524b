//! A database as a store of sessions that lock.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio_postgres::SimpleQueryMessage;
use url::Url;

use super::session::AdvisorySession;
use super::statement::Statements;
use crate::driver::postgres::address::Address;
use crate::driver::postgres::fault::{judge, no_tables, pooled};
use crate::driver::postgres::live::{Hear, Heard, open_first};
use crate::driver::postgres::{guarantees, schema, setup};
use crate::driver::sql::fault::absent;
use crate::driver::within::within;
use crate::error::Result;
use crate::options::Options;
use crate::port::{
    Capabilities, EndSink, Failure, Fence, LockKey, LockState, Mode, RuntimeHandle, SessionStore,
};

/// One client's view of the advisory locks in a PostgreSQL database. [`Sessions`](crate::Sessions) makes a store of locks of it.
pub struct AdvisoryStore {
    address: Arc<Address>,
    runtime: RuntimeHandle,
    setup: String,
    create: bool,
    connect_timeout: Duration,
    /// Whether it is known that each connection has a session of its own.
    probed: AtomicBool,
}

impl AdvisoryStore {
    /// The database of `postgres+advisory://user[:password]@host[:port]/database`. `others` are the hosts behind the first, which a
    /// URL cannot hold. Nothing is connected yet.
    pub fn new(
        url: &Url,
        others: &[String],
        options: &Options,
        runtime: RuntimeHandle,
    ) -> Result<Self> {
        let address = Arc::new(Address::parse(url, others, options)?);
        let (create, connect_timeout) = (options.create, options.connect_timeout);
        let (setup, probed) = (setup::setup(options)?, AtomicBool::new(false));
        Ok(Self { address, runtime, setup, create, connect_timeout, probed })
    }

    async fn open(&self, ttl: Duration, ended: EndSink) -> Result<AdvisorySession> {
        let ttl = ttl.as_millis();
        // A session that waits is not idle; it ends when it is told of the grant, or when the server sees that its client has gone.
        let setup = format!(
            "SET idle_session_timeout = {ttl}; SET tcp_user_timeout = {ttl}; SET statement_timeout = 0; SET lock_timeout = 0;
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
        let (live, host) = open_first(&self.address, &setup, Some(hear), &self.runtime).await?;
        let refusal =
            |error: tokio_postgres::Error| judge(&self.address, &error, false).failure.error;
        let missing = |error: &tokio_postgres::Error| {
            error.code().is_some_and(|code| matches!(code.code(), "42P01" | "42883"))
        };
        let prepared = match Statements::prepare(&live.client).await {
            Err(error) if self.create && missing(&error) => {
                schema::create(&live.client).await.map_err(refusal)?;
                Statements::prepare(&live.client).await
            }
            prepared => prepared,
        };
        let unprepared = |error| if missing(&error) { no_tables() } else { refusal(error) };
        let live = live.with(prepared.map_err(unprepared)?);
        if !mutant!(SessionTokensNotAdvanced) {
            live.client.batch_execute("SELECT fencelock_advance()").await.map_err(refusal)?;
        }
        let place = (self.address.clone(), host);
        let session = AdvisorySession::new(place, self.runtime.clone(), live, over).await;
        let session = session.map_err(|failure| failure.error)?;
        if !self.probed.load(Ordering::Acquire) && !mutant!(PoolerNotSought) {
            self.probe(&session).await?;
            self.probed.store(true, Ordering::Release);
        }
        Ok(session)
    }

    /// Makes sure that a session keeps its backend while another one has a transaction open.
    async fn probe(&self, session: &AdvisorySession) -> Result<()> {
        let refusal =
            |error: tokio_postgres::Error| judge(&self.address, &error, false).failure.error;
        let (other, _) = open_first(&self.address, &self.setup, None, &self.runtime).await?;
        let told = other.client.simple_query("BEGIN; SELECT pg_backend_pid()").await;
        let told = told.map_err(refusal)?;
        let backend = told.iter().find_map(|answer| match answer {
            SimpleQueryMessage::Row(row) => row.get(0)?.parse::<i32>().ok(),
            _ => None,
        });
        let kept = crate::port::Session::beat(session).await;
        let _ = other.client.batch_execute("COMMIT").await;
        kept.map_err(|failure| failure.error)?;
        if backend == Some(session.backend()) { Err(pooled()) } else { Ok(()) }
    }

    async fn within_connect<T>(&self, work: impl Future<Output = Result<T>>) -> Result<T> {
        let late = || Err(absent(&*self.address, "it took too long"));
        within(&self.runtime, self.connect_timeout, work).await.unwrap_or_else(late)
    }
}

impl SessionStore for AdvisoryStore {
    type Session = AdvisorySession;

    fn capabilities(&self) -> Capabilities {
        Capabilities::new("postgres", Fence::ClockBounded)
            .with_sessions()
            .with_guarantees(guarantees::ADVISORY)
    }

    fn refusal(&self, mode: Mode) -> Option<&'static str> {
        match mode {
            Mode::Exclusive | Mode::Read | Mode::Write => None,
            Mode::Upgradeable => Some(
                "advisory locks of PostgreSQL have readers and writers only; for an upgrade use `postgres://`",
            ),
            Mode::Permit => {
                Some("advisory locks of PostgreSQL do not count; for permits use `postgres://`")
            }
        }
    }

    async fn connect(&self, ttl: Duration, ended: EndSink) -> Result<AdvisorySession> {
        self.within_connect(self.open(ttl, ended)).await
    }

    async fn state(&self, of: &AdvisorySession, lock: &LockKey) -> Result<LockState, Failure> {
        of.look(lock).await
    }
}
