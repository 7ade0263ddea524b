//! The connections of one client: one for what is one statement, where notices are heard too, and a few for transactions.

use std::future::Future;
use std::sync::{Arc, Weak};
use std::time::Duration;

use super::address::Address;
use super::fault::judge;
use super::live::{Hear, Heard, Live, open_first};
use super::own_table::OwnTable;
use super::pooler::Pooling;
use super::statement::{Several, Single};
use super::{schema, setup};
use crate::driver::datagram;
use crate::driver::sql::fault::{Fault, Next, absent, lost};
use crate::driver::sql::idle::{Idle, close_old};
use crate::driver::sql::known::Known;
use crate::driver::sql::known_tables::KnownTables;
use crate::driver::sql::room::when_there_is_room;
use crate::driver::sql::sweep::Sweep;
use crate::driver::sql::tables::Tables;
use crate::driver::within::within;
use crate::error::{Code, Error, Result};
use crate::options::Options;
use crate::port::backoff::Backoff;
use crate::port::failures::Failures;
use crate::port::{BoxFuture, Instant, Notice, NoticeSink, OwnerId, RuntimeHandle};
use crate::runtime::sync::Mutex;

/// The most transactions a client has at once: one that waits for a stopped client must not hold up all others.
const AT_ONCE: usize = 4;
/// A connection that was not heard of for so long is asked whether it is still there, and has so long to answer: what stands between may
/// have dropped it without a word.
const FRESH: Duration = Duration::from_secs(5);
const PATIENCE: Duration = Duration::from_millis(500);
/// A connection that did not answer for so long is left, also when its caller stays for less than the time limit.
const SILENT: Duration = Duration::from_secs(1);
/// How long a plain case may wait for a row. It has its connection to itself no longer than this.
const PLAIN_WAIT: Duration = Duration::from_millis(50);
/// How long the server keeps a row locked for a client that stands still within a transaction.
const STALLED: Duration = Duration::from_secs(1);

/// See the module.
pub(super) struct Link {
    pub(super) address: Address,
    pub(super) runtime: RuntimeHandle,
    /// Where this client hears.
    pub(super) channel: Arc<str>,
    pub(super) timeout: Duration,
    pub(super) known: Known,
    connect_timeout: Duration,
    create: bool,
    /// The first statements of each connection.
    setup: String,
    state: Mutex<State>,
    pub(super) sweep: Mutex<Sweep>,
    tables: Tables,
    /// The user's own tables that were found.
    pub(super) own_tables: KnownTables<OwnTable>,
    /// A row there may be locked for long; that is not to hold up locks.
    pub(super) own_turns: tokio::sync::Semaphore,
    /// Held by the one who connects.
    connecting: tokio::sync::Mutex<()>,
    pub(super) turns: tokio::sync::Semaphore,
    /// For whoever outlives it.
    weak: Weak<Self>,
}

#[derive(Default)]
struct State {
    single: Option<Arc<Live<Single>>>,
    /// When it was heard of last.
    heard: Instant,
    /// Connections no transaction is on.
    idle: Idle<Live<Several>>,
    sink: Option<NoticeSink>,
    /// Attempts to connect.
    failures: Failures,
    closed: bool,
}

impl Link {
    /// Connects, or says why not.
    pub(super) async fn connect(
        address: Address,
        options: &Options,
        runtime: RuntimeHandle,
    ) -> Result<Arc<Self>> {
        let setup = format!(
            "SET idle_in_transaction_session_timeout = {}; {}",
            STALLED.as_millis(),
            setup::setup(options)?
        );
        let channel = format!("fencelock_{}", OwnerId::draw(&*runtime)).into();
        let tables = Tables::new(&options.table, '"')?;
        let link = Arc::new_cyclic(|weak| Self {
            address,
            runtime,
            channel,
            timeout: options.timeout,
            known: Known::default(),
            tables,
            connect_timeout: options.connect_timeout,
            create: options.create,
            setup,
            state: Mutex::default(),
            sweep: Mutex::default(),
            own_tables: KnownTables::default(),
            own_turns: tokio::sync::Semaphore::new(AT_ONCE),
            connecting: tokio::sync::Mutex::default(),
            turns: tokio::sync::Semaphore::new(AT_ONCE),
            weak: weak.clone(),
        });
        let sought = Pooling::default();
        sought.refuse(&link.address, &link.runtime, link.connect_timeout).await?;
        link.single().await?;
        Ok(link)
    }

    /// The connection for single statements; one is made if there is none.
    pub(super) async fn single(&self) -> Result<Arc<Live<Single>>> {
        let before = match self.present()? {
            Ok(live) if self.answers(&live).await => return Ok(live),
            Ok(_) => self.state.lock().failures.count(),
            Err(failed) => failed,
        };
        let _connecting = self.connecting.lock().await;
        if let Ok(live) = self.present()? {
            return Ok(live);
        }
        // Somebody else has tried while this one waited.
        if let Some(why) = self.state.lock().failures.since(before) {
            return Err(why);
        }
        match self.within_connect(Box::pin(self.open_single())).await {
            Ok(live) => {
                let live = Arc::new(live);
                let mut state = self.state.lock();
                if state.closed {
                    return Err(Error::closed());
                }
                (state.single, state.heard) = (Some(live.clone()), self.runtime.now());
                let sink = state.sink.clone();
                drop(state);
                if let Some(sink) = sink {
                    sink(Notice::Gap);
                }
                Ok(live)
            }
            Err(error) => {
                self.state.lock().failures.add(&error);
                Err(error)
            }
        }
    }

    /// Whether the connection was heard of lately, or answers now. If not, it is left.
    async fn answers(&self, live: &Arc<Live<Single>>) -> bool {
        if self.runtime.now().since(self.state.lock().heard) < FRESH {
            return true;
        }
        let asked = live.client.batch_execute("");
        let answers = matches!(within(&self.runtime, PATIENCE, asked).await, Some(Ok(())));
        if answers {
            self.state.lock().heard = self.runtime.now();
        } else {
            self.leave(live);
        }
        answers
    }

    /// The connection, or how many attempts have failed.
    fn present(&self) -> Result<Result<Arc<Live<Single>>, u64>> {
        let state = self.state.lock();
        if state.closed {
            return Err(Error::closed());
        }
        let live = state.single.clone().filter(|live| !live.client.is_closed());
        Ok(live.ok_or(state.failures.count()))
    }

    async fn open_single(&self) -> Result<Live<Single>> {
        let link = self.weak.clone();
        let hear: Hear = Arc::new(move |heard| {
            let Some(link) = link.upgrade() else { return };
            match heard {
                Heard::Message(text) => link.hear(&text),
                Heard::End => link.runtime.clone().spawn(link.hear_again()),
            }
        });
        let listens = self.state.lock().sink.is_some();
        let setup = self.patient_setup();
        let setup = if listens { format!("{}; {setup}", self.listen_statement()) } else { setup };
        let open = || self.open(&setup, Some(hear.clone()));
        let live = when_there_is_room(&self.runtime, self.connect_timeout, open).await?;
        let prepared = match Single::prepare(&live.client, &self.tables).await {
            Err(error)
                if self.create && error.code().is_some_and(|code| code.code() == "42P01") =>
            {
                schema::create(&live.client, &self.tables)
                    .await
                    .map_err(|error| self.refusal(&error))?;
                Single::prepare(&live.client, &self.tables).await
            }
            prepared => prepared,
        };
        let statements = prepared.map_err(|error| self.refusal(&error))?;
        // Only now: whoever has the whole table for a moment, as a vacuum does, must not refuse a connection.
        let hasty = format!("SET lock_timeout = {}", PLAIN_WAIT.as_millis());
        live.client.batch_execute(&hasty).await.map_err(|error| self.refusal(&error))?;
        Ok(live.with(statements))
    }

    /// The first statements of a connection, which waits for locks as long as for anything else.
    fn patient_setup(&self) -> String {
        format!("SET lock_timeout = {}; {}", setup::milliseconds(self.timeout), self.setup)
    }

    /// A connection for a transaction. While the server is full, one that is given back serves as well.
    pub(super) async fn open_several(&self) -> Result<Live<Several>> {
        let limit = self.connect_timeout;
        when_there_is_room(&self.runtime, limit, || self.take_or_open()).await
    }

    async fn take_or_open(&self) -> Result<Live<Several>> {
        {
            let mut state = self.state.lock();
            if state.closed {
                return Err(Error::closed());
            }
            state.idle.retain(|live| !live.client.is_closed());
            if let Some((live, _)) = state.idle.pop() {
                return Ok(live);
            }
        }
        self.within_connect(Box::pin(self.make_several())).await
    }

    async fn make_several(&self) -> Result<Live<Several>> {
        let live = self.open(&self.patient_setup(), None).await?;
        let statements = Several::prepare(&live.client, &self.tables)
            .await
            .map_err(|error| self.refusal(&error))?;
        schema::check(&self.tables, &statements.store, &statements.cell_store)?;
        Ok(live.with(statements))
    }

    /// Keeps a connection for the next transaction.
    pub(super) fn put_back(&self, live: Live<Several>) {
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

    async fn open(&self, setup: &str, hear: Option<Hear>) -> Result<Live<()>> {
        let limit = self.connect_timeout;
        Ok(open_first(&self.address, setup, hear, &self.runtime, limit).await?.0)
    }

    async fn within_connect<T>(&self, work: impl Future<Output = Result<T>>) -> Result<T> {
        let late = || Err(absent(&self.address, "it took too long"));
        within(&self.runtime, self.connect_timeout, work).await.unwrap_or_else(late)
    }

    fn refusal(&self, error: &tokio_postgres::Error) -> Error {
        judge(&self.address, error, false).failure.error
    }

    /// Sends a statement that counts by itself, and waits for its answer.
    pub(super) async fn ask<T>(
        &self,
        live: &Arc<Live<Single>>,
        statement: impl Future<Output = Result<T, tokio_postgres::Error>>,
        decides: bool,
    ) -> Result<T, Fault> {
        let sent = self.runtime.now();
        let given_up = scopeguard::guard((), |()| {
            if self.runtime.now().since(sent) >= SILENT {
                self.leave(live);
            }
        });
        let answer = within(&self.runtime, self.timeout, statement).await;
        scopeguard::ScopeGuard::into_inner(given_up);
        let fault = match answer {
            Some(Ok(answer)) => {
                self.state.lock().heard = self.runtime.now();
                return Ok(answer);
            }
            Some(Err(error)) => judge(&self.address, &error, decides),
            None => lost(&self.address, "it took too long", decides),
        };
        if fault.next == Next::Reconnect {
            self.leave(live);
        }
        Err(fault)
    }

    /// Uses this connection no more. Whoever listens needs another one.
    fn leave(&self, live: &Arc<Live<Single>>) {
        let mut state = self.state.lock();
        let present = state.single.take_if(|present| Arc::ptr_eq(present, live));
        drop(state);
        if let (Some(_), Some(link)) = (present, self.weak.upgrade()) {
            self.runtime.spawn(link.hear_again());
        }
    }

    /// Has notices delivered to `sink` from now on.
    pub(super) async fn listen(&self, sink: NoticeSink) -> Result<()> {
        self.state.lock().sink = Some(sink);
        let live = self.single().await?;
        let statement = self.listen_statement();
        let listening = live.client.batch_execute(&statement);
        self.ask(&live, listening, false).await.map_err(|fault| fault.failure.error)
    }

    fn listen_statement(&self) -> String {
        format!("LISTEN {}", self.channel)
    }

    fn hear(&self, text: &str) {
        let sink = self.state.lock().sink.clone();
        if let Some(sink) = sink {
            datagram::read(text.as_bytes()).for_each(|notice| sink(notice));
        }
    }

    /// Delivers notices of this client to itself directly, without the server.
    pub(super) fn tell_self(&self, notices: impl Iterator<Item = Notice>) {
        let sink = self.state.lock().sink.clone();
        if let Some(sink) = sink {
            notices.for_each(|notice| sink(notice));
        }
    }

    /// Connects anew for as long as somebody listens.
    fn hear_again(self: Arc<Self>) -> BoxFuture<'static, ()> {
        let (runtime, link) = (self.runtime.clone(), self.weak.clone());
        Box::pin(async move {
            let mut backoff = Backoff::new();
            while let Some(link) = link.upgrade().filter(|link| link.state.lock().sink.is_some()) {
                match link.single().await {
                    Err(error) if error.code() != Code::Closed => {}
                    _ => return,
                }
                drop(link);
                let pause = Backoff::spread(backoff.next(), &runtime);
                runtime.sleep_until(runtime.now() + pause).await;
            }
        })
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
