//! The connections of one client. Each does one thing at a time, so there are as many as are needed at once.

use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::future::{Either, select};
use mysql_async::prelude::Queryable;

use super::address::Address;
use super::fault::{judge, other_shape};
use super::finishing::Finishing;
use super::heard::Heard;
use super::live::{Answered, Live, Statement, ask};
use super::own_table::OwnTable;
use super::plain::Statements;
use super::{schema, statement};
use crate::driver::sql::fault::{Fault, Next, absent, lost};
use crate::driver::sql::idle::{Idle, close_old};
use crate::driver::sql::known::Known;
use crate::driver::sql::known_tables::KnownTables;
use crate::driver::sql::room::when_there_is_room;
use crate::driver::sql::tables::Tables;
use crate::driver::within::within;
use crate::error::{Error, Result};
use crate::options::Options;
use crate::port::backoff::Backoff;
use crate::port::{Instant, Notice, NoticeSink, OwnerId, RuntimeHandle};
use crate::runtime::sync::Mutex;

/// The most transactions a client has at once, and the most other statements: one that waits for a locked row must not hold up the others.
const AT_ONCE: usize = 4;
/// A connection that lay idle for so long is asked whether it is still there: a statement that is lost with it has an unknown outcome.
const FRESH: Duration = Duration::from_secs(1);
/// It has so long to answer: what stands between may have dropped it without a word.
const PATIENCE: Duration = Duration::from_millis(500);
/// How often a client that changes cells deletes some that have ended.
const SWEEP: Duration = Duration::from_secs(5);

/// See the module.
pub(super) struct Link {
    pub(super) address: Address,
    pub(super) runtime: RuntimeHandle,
    /// By which name this client is told.
    pub(super) channel: Arc<str>,
    pub(super) timeout: Duration,
    pub(super) known: Known,
    pub(super) tables: Tables,
    pub(super) statements: Statements,
    /// The user's own tables that were found.
    pub(super) own_tables: KnownTables<OwnTable>,
    /// A row there may be locked for long; that is not to hold up locks.
    pub(super) own_turns: tokio::sync::Semaphore,
    connect_timeout: Duration,
    pub(super) state: Mutex<State>,
    pub(super) turns: tokio::sync::Semaphore,
    single_turns: tokio::sync::Semaphore,
    /// For whoever outlives it.
    pub(super) weak: Weak<Self>,
}

#[derive(Default)]
pub(super) struct State {
    /// Connections nobody uses.
    idle: Idle<Live>,
    pub(super) sink: Option<NoticeSink>,
    pub(super) heard: Heard,
    /// Whether a task looks at what is told, and after which pause next.
    pub(super) polls: bool,
    pub(super) pause: Backoff,
    /// When cells that have ended were last deleted from here.
    swept: Option<Instant>,
    pub(super) closed: bool,
}

impl Link {
    /// Connects, or says why not; and whether the server writes its log at each commit.
    pub(super) async fn connect(
        address: Address,
        options: &Options,
        runtime: RuntimeHandle,
    ) -> Result<(Arc<Self>, bool)> {
        let channel = format!("fencelock_{}", OwnerId::draw(&*runtime)).into();
        let tables = Tables::new(&options.table, '`')?;
        let link = Arc::new_cyclic(|weak| Self {
            address,
            runtime,
            channel,
            timeout: options.timeout,
            known: Known::default(),
            statements: Statements::new(&tables),
            tables,
            own_tables: KnownTables::default(),
            own_turns: tokio::sync::Semaphore::new(AT_ONCE),
            connect_timeout: options.connect_timeout,
            state: Mutex::default(),
            turns: tokio::sync::Semaphore::new(AT_ONCE),
            single_turns: tokio::sync::Semaphore::new(AT_ONCE),
            weak: weak.clone(),
        });
        let mut live = link.take().await?;
        let found = link.within_connect(async {
            Ok(schema::find(&mut live.conn, &link.tables, options.create).await)
        });
        let other = found.await?.map_err(|error| link.refusal(&error))?;
        if let Some((column, kind)) = other {
            return Err(other_shape(&column, kind));
        }
        let durable = live.durable;
        link.put_back(live);
        Ok((link, durable))
    }

    /// A connection that is there; one is made if there is none. While the server is full, one that is given back serves as well.
    pub(super) async fn take(&self) -> Result<Live> {
        let limit = self.connect_timeout;
        when_there_is_room(&self.runtime, limit, || self.take_or_open()).await
    }

    async fn take_or_open(&self) -> Result<Live> {
        loop {
            let idle = {
                let mut state = self.state.lock();
                if state.closed {
                    return Err(Error::closed());
                }
                state.idle.pop()
            };
            let Some((mut live, used)) = idle else { return self.open().await };
            if self.runtime.now().since(used) < FRESH {
                return Ok(live);
            }
            if within(&self.runtime, PATIENCE, live.conn.ping()).await.is_some_and(|it| it.is_ok())
            {
                return Ok(live);
            }
            // The others lay idle for longer.
            self.drop_idle();
        }
    }

    /// Tries the servers in turn; the first that takes writes is the one.
    async fn open(&self) -> Result<Live> {
        Ok(Live::open_first(&self.address, &self.runtime, self.connect_timeout).await?.0)
    }

    pub(super) async fn within_connect<T>(
        &self,
        work: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        let late = || Err(absent(&self.address, "it took too long"));
        within(&self.runtime, self.connect_timeout, work).await.unwrap_or_else(late)
    }

    pub(super) fn refusal(&self, error: &mysql_async::Error) -> Error {
        judge(&self.address, error, false).failure.error
    }

    /// Keeps a connection for whoever is next.
    pub(super) fn put_back(&self, live: Live) {
        let mut state = self.state.lock();
        if state.closed {
            return;
        }
        let begins = state.idle.push(live, self.runtime.now());
        drop(state);
        if begins {
            let link = self.weak.clone();
            let old = move |now| link.upgrade().map(|link| link.state.lock().idle.take_old(now));
            self.runtime.spawn(Box::pin(close_old(self.runtime.clone(), old)));
        }
    }

    /// Uses none of the idle connections any more: they have probably ended too.
    pub(super) fn drop_idle(&self) {
        self.state.lock().idle.retain(|_| false);
    }

    /// Sends a statement that counts by itself, and waits for its answer. Once sent it is read to its end.
    pub(super) async fn ask(&self, statement: Statement, decides: bool) -> Result<Answered, Fault> {
        let Some(link) = self.weak.upgrade() else {
            return Err(Fault::refused(Error::closed()));
        };
        let work = Box::pin(link.carry(statement, decides));
        Finishing::new(self.runtime.clone(), work).await
    }

    async fn carry(
        self: Arc<Self>,
        statement: Statement,
        decides: bool,
    ) -> Result<Answered, Fault> {
        let end = self.runtime.now() + self.timeout;
        let late = |decides| lost(&self.address, "it took too long", decides);
        let turn = pin!(self.single_turns.acquire());
        let _turn = match select(turn, self.runtime.sleep_until(end)).await {
            Either::Left((turn, _)) => turn,
            Either::Right(_) => return Err(late(false)),
        };
        let mut live = self.take().await.map_err(Fault::refused)?;
        let over = self.runtime.sleep_until(end);
        let answered = match select(pin!(ask(&mut live.conn, &statement)), over).await {
            Either::Left((answered, _)) => answered,
            Either::Right(_) => {
                self.drop_idle();
                return Err(late(decides));
            }
        };
        match answered {
            Ok(answered) => {
                self.put_back(live);
                Ok(answered)
            }
            Err(error) => {
                let fault = judge(&self.address, &error, decides);
                if fault.next == Next::Reconnect {
                    self.drop_idle();
                } else if roll_back(&mut live).await {
                    self.put_back(live);
                }
                Err(fault)
            }
        }
    }

    /// Deletes some cells that have ended, now and then. Nobody waits for it.
    pub(super) fn sweep(&self) {
        let now = self.runtime.now();
        let mut state = self.state.lock();
        if state.swept.is_some_and(|swept| now.since(swept) < SWEEP) {
            return;
        }
        state.swept = Some(now);
        drop(state);
        let Some(link) = self.weak.upgrade() else { return };
        self.runtime.spawn(Box::pin(async move {
            // What is left is deleted the next time.
            let _ = link.ask(Statement::Text(statement::cell_sweep(&link.tables)), false).await;
        }));
    }

    /// Has notices delivered to `sink` from now on.
    pub(super) fn listen(&self, sink: NoticeSink) {
        self.state.lock().sink = Some(sink);
    }

    /// Tells this client.
    pub(super) fn tell_self(&self, notices: impl IntoIterator<Item = Notice>) {
        let sink = self.state.lock().sink.clone();
        if let Some(sink) = sink {
            notices.into_iter().for_each(|notice| sink(notice));
        }
    }

    /// Lets go of all connections. What is asked after it is answered `closed`.
    pub(super) fn close(&self) {
        let mut state = self.state.lock();
        let left = std::mem::take(&mut *state);
        state.closed = true;
        drop(state);
        drop(left);
    }
}

/// Ends what a failure has left open; whether the connection is sound.
pub(super) async fn roll_back(live: &mut Live) -> bool {
    live.conn.query_drop(statement::roll_back()).await.is_ok()
}
