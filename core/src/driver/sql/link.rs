//! One client's way to a database: its connections for transactions, and what it remembers.

use std::future::Future;
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit};
use url::Url;

use super::address::Address;
use super::dialect::{AddressOf, Connection, Dialect, Layout, Tables, Texts};
use super::fault::{Fault, Next, absent, is_full, lost};
use super::known::Known;
use super::known::KnownTables;
use super::pool::when_there_is_room;
use super::pool::{Idle, close_old};
use super::statement::{Answer, Row, Statement, Value, column, name};
use super::sweep::Sweep;
use super::waits::Waits;
use crate::driver::within::within;
use crate::error::{Code, Error, Result};
use crate::options::Options;
use crate::port::detach_on_drop::DetachOnDrop;
use crate::port::{Instant, Notice, NoticeSink, OwnerId, RuntimeHandle};
use crate::runtime::sync::Mutex;

/// The most transactions a client has at once, and the most statements that take a connection each: one that waits for a locked row must
/// not hold up all others.
const AT_ONCE: usize = 4;
/// The same of rows in a user's own tables, which may be locked for long; that is not to hold up locks.
const OWN_AT_ONCE: usize = 2;

/// The connections of one client, and what it remembers.
pub struct Link<D: Dialect> {
    pub(in crate::driver) dialect: D,
    pub(in crate::driver) address: AddressOf<D>,
    pub(in crate::driver) runtime: RuntimeHandle,
    /// Where this client is told.
    pub(in crate::driver) channel: Arc<str>,
    pub(in crate::driver) timeout: Duration,
    pub(in crate::driver) connect_timeout: Duration,
    pub(in crate::driver) create: bool,
    pub(in crate::driver) tables: Tables,
    pub(in crate::driver) texts: Texts,
    pub(in crate::driver) known: Known,
    /// The user's own tables that were found.
    pub(in crate::driver) own_tables: KnownTables<Layout>,
    pub(super) sweep: Mutex<Sweep>,
    pub(in crate::driver) waits: Mutex<Waits>,
    pub(super) turns: Turns,
    /// Locked by the task that asks a full server again.
    full: tokio::sync::Mutex<()>,
    state: Mutex<State<D::Connection>>,
    /// For whoever outlives it.
    pub(in crate::driver) weak: Weak<Self>,
}

struct State<C> {
    /// Connections nobody uses.
    idle: Idle<C>,
    /// When one of them was given back last.
    used: Instant,
    /// Whether the server refused a connection last, since it has too many.
    is_full: bool,
    sink: Option<NoticeSink>,
    /// When cells that have ended were last deleted from here.
    swept: Option<Instant>,
    closed: bool,
}

/// How many do what at once. Who waits for one of the others has one of `all` only after that.
pub(super) struct Turns {
    all: Semaphore,
    transactions: Semaphore,
    own: Semaphore,
    singles: Semaphore,
}

/// The purposes for which a connection is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::driver) enum Purpose {
    Transaction,
    /// A transaction on a row of a user's own table.
    OwnRow,
    /// One statement.
    Single,
}

impl<D: Dialect> Link<D> {
    /// Connects, or says why not.
    pub(super) async fn open(
        url: &Url,
        others: &[String],
        options: &Options,
        runtime: RuntimeHandle,
    ) -> Result<Arc<Self>> {
        let dialect = D::new(options)?;
        let address = Address::parse(url, others, options, D::RULES, D::tls)?;
        let channel = format!("fencelock_{}", OwnerId::draw(&*runtime)).into();
        let tables = Tables::new(&options.table, D::MARK)?;
        let link = Arc::new_cyclic(|weak| Self {
            dialect,
            address,
            runtime,
            channel,
            timeout: options.timeout,
            connect_timeout: options.connect_timeout,
            create: options.create,
            texts: Texts::of::<D>(&tables),
            tables,
            known: Known::default(),
            own_tables: KnownTables::default(),
            sweep: Mutex::default(),
            waits: Mutex::default(),
            turns: Turns {
                all: Semaphore::new(D::MOST_POOLED),
                transactions: Semaphore::new(AT_ONCE),
                own: Semaphore::new(OWN_AT_ONCE),
                singles: Semaphore::new(AT_ONCE),
            },
            full: tokio::sync::Mutex::default(),
            state: Mutex::new(State {
                idle: Idle::default(),
                used: Instant::default(),
                is_full: false,
                sink: None,
                swept: None,
                closed: false,
            }),
            weak: weak.clone(),
        });
        D::begin(&link).await?;
        Ok(link)
    }

    /// Waits until one more connection may be used for this.
    pub(super) async fn turn(&self, purpose: Purpose) -> [SemaphorePermit<'_>; 2] {
        let Turns { all, transactions, own, singles } = &self.turns;
        let first = match purpose {
            Purpose::Transaction => transactions,
            Purpose::OwnRow => own,
            Purpose::Single => singles,
        };
        let first = first.acquire().await.expect("it is never closed");
        [first, all.acquire().await.expect("it is never closed")]
    }

    /// A connection that is there; one is made if there is none. While the server is full, one that is given back serves as well.
    pub(in crate::driver) async fn take(&self) -> Result<D::Connection> {
        if let Some(connection) = self.take_idle().await? {
            return Ok(connection);
        }
        // One task of a client asks a full server again: hundreds of refusals a second would keep it from all else.
        let turn = async {
            let is_full = self.state.lock().is_full;
            if is_full { Some(self.full.lock().await) } else { None }
        };
        let _turn = self.within_connect(async { Ok(turn.await) }).await?;
        let limit = self.connect_timeout;
        when_there_is_room(&self.runtime, limit, || self.take_or_open()).await
    }

    async fn take_or_open(&self) -> Result<D::Connection> {
        if let Some(connection) = self.take_idle().await? {
            return Ok(connection);
        }
        let opened = self.within_connect(Box::pin(D::connect(self))).await;
        let is_full = opened.as_ref().is_err_and(is_full);
        self.state.lock().is_full = is_full;
        if is_full {
            D::make_room(self);
        }
        opened
    }

    async fn take_idle(&self) -> Result<Option<D::Connection>> {
        loop {
            let idle = {
                let mut state = self.state.lock();
                if state.closed {
                    return Err(Error::closed());
                }
                state.idle.pop()
            };
            let Some((mut connection, used)) = idle else { return Ok(None) };
            if connection.is_sound(self.runtime.now().since(used), &self.runtime).await {
                return Ok(Some(connection));
            }
            // The others lay idle for longer.
            self.drop_idle();
        }
    }

    /// Keeps a connection for whoever is next.
    pub(in crate::driver) fn put_back(&self, connection: D::Connection) {
        let mut state = self.state.lock();
        if state.closed {
            return;
        }
        state.used = self.runtime.now();
        let begins = state.idle.push(connection, self.runtime.now());
        drop(state);
        if begins {
            let link = self.weak.clone();
            let old = move |now| link.upgrade().map(|link| link.state.lock().idle.take_old(now));
            self.runtime.spawn(Box::pin(close_old(self.runtime.clone(), old)));
        }
    }

    /// When a connection was given back last.
    #[cfg_attr(not(feature = "postgres"), allow(dead_code))]
    pub(in crate::driver) fn used(&self) -> Instant {
        self.state.lock().used
    }

    /// Uses none of the idle connections any more: they have probably ended too.
    pub(in crate::driver) fn drop_idle(&self) {
        drop(self.state.lock().idle.take_all());
    }

    pub(in crate::driver) async fn within_connect<T>(
        &self,
        work: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        let late = || Err(absent(&self.address, "it took too long"));
        within(&self.runtime, self.connect_timeout, work).await.unwrap_or_else(late)
    }

    /// Sends statements that count by themselves.
    pub(in crate::driver) async fn ask(
        &self,
        statements: Vec<Statement>,
        decides: bool,
    ) -> Result<Answer, Fault> {
        D::ask_of(self, statements, decides, &[]).await
    }

    /// There is no connection beside the pool: one more of it makes up for that.
    #[cfg(feature = "postgres")]
    pub(in crate::driver) fn use_pool_alone(&self) {
        self.turns.all.add_permits(1);
    }

    /// Sends such statements on a connection of the pool and, once sent, reads their answer to its end, whoever stays for it.
    pub(in crate::driver) async fn ask_pooled(
        &self,
        statements: Vec<Statement>,
        decides: bool,
        known: &'static [D::Known],
    ) -> Result<Answer, Fault> {
        let Some(link) = self.weak.upgrade() else {
            return Err(Fault::refused(Error::closed()));
        };
        let runtime = link.runtime.clone();
        let work = async move { link.pooled(&statements, decides, known).await };
        DetachOnDrop::new(Box::pin(work), &runtime).await
    }

    /// Sends such statements on a connection of the pool, of which each does one thing at a time, and reads the answer to its end.
    async fn pooled(
        &self,
        statements: &[Statement],
        decides: bool,
        known: &'static [D::Known],
    ) -> Result<Answer, Fault> {
        let end = self.runtime.now() + self.timeout;
        let late = |decides| lost(&self.address, "it took too long", decides);
        let turn = within(&self.runtime, self.timeout, self.turn(Purpose::Single)).await;
        let _turn = turn.ok_or_else(|| late(false))?;
        let mut connection = self.take().await.map_err(Fault::refused)?;
        let asked = connection.ask_of(statements, decides, known);
        let left = end.since(self.runtime.now());
        let Some(answer) = within(&self.runtime, left, asked).await else {
            self.drop_idle();
            return Err(late(decides));
        };
        match &answer {
            Ok(_) => self.put_back(connection),
            Err(fault) if fault.next == Next::Reconnect => self.drop_idle(),
            Err(_) => self.roll_back(connection).await,
        }
        answer
    }

    /// Ends what a failure has left open, and keeps the connection if it is sound.
    pub(super) async fn roll_back(&self, mut connection: D::Connection) {
        let [.., roll_back] = connection.transaction();
        let rolled_back = connection.ask(&roll_back, false);
        if within(&self.runtime, self.timeout, rolled_back).await.is_some_and(|it| it.is_ok()) {
            self.put_back(connection);
        }
    }

    /// Where notices are delivered, if anybody listens.
    pub(in crate::driver) fn sink(&self) -> Option<NoticeSink> {
        self.state.lock().sink.clone()
    }

    /// Delivers notices to this client itself, without the server.
    pub(in crate::driver) fn tell_self(&self, notices: impl IntoIterator<Item = Notice>) {
        if let Some(sink) = self.sink() {
            notices.into_iter().for_each(|notice| sink(notice));
        }
    }

    pub(super) async fn listen(&self, sink: NoticeSink) -> Result<()> {
        self.state.lock().sink = Some(sink);
        D::listen(self).await
    }

    pub(in crate::driver) fn is_closed(&self) -> bool {
        self.state.lock().closed
    }

    /// Whether cells were not swept for so long. From now on they were.
    pub(super) fn sweeps_cells(&self, every: Duration) -> bool {
        let (now, mut state) = (self.runtime.now(), self.state.lock());
        let is_due = state.swept.is_none_or(|swept| now.since(swept) >= every);
        if is_due {
            state.swept = Some(now);
        }
        is_due
    }

    /// A row was made. Sweeps beside whoever made it, if it is time.
    pub(super) fn row_made(&self) {
        let Some(from) = self.sweep.lock().row_made() else { return };
        let Some(link) = self.weak.upgrade() else { return };
        self.runtime.spawn(Box::pin(async move {
            let swept = link.sweep_behind(from).await;
            link.sweep.lock().swept(swept);
        }));
    }

    /// Deletes unused rows behind this name. Answers the last that it looked at.
    async fn sweep_behind(self: &Arc<Self>, from: String) -> Result<Option<String>, Code> {
        let looked = Statement::kept(&self.texts.sweep_look, [name(from)]);
        let looked = self.ask(vec![looked], false).await;
        let rows = looked.map_err(|fault| fault.failure.error.code())?.rows();
        let read = |row: &Row| column::<&str>(row, 0, "name").ok().map(str::to_owned);
        let unused = |row: &&Row| column::<bool>(row, 1, "unused").is_ok_and(|it| it);
        let old: Vec<String> = rows.iter().filter(unused).filter_map(read).collect();
        let delete = |names| {
            let delete = Statement::once(self.texts.sweep.clone(), [Value::Names(names)]);
            self.ask(vec![delete], false)
        };
        if !old.is_empty()
            && let Err(fault) = delete(old.clone()).await
        {
            let code = fault.failure.error.code();
            if code == Code::Auth {
                return Err(code);
            }
            // Somebody has one of them locked: that one stays.
            for name in old {
                let _ = delete(vec![name]).await;
            }
        }
        Ok(rows.last().and_then(read))
    }

    /// Lets go of all connections. What is asked after it is answered `closed`.
    pub(super) fn close(&self) {
        let mut state = self.state.lock();
        let left = (state.idle.take_all(), state.sink.take());
        state.closed = true;
        drop(state);
        drop(left);
        self.waits.lock().clear();
        self.dialect.close();
    }
}
