//! Locks that live with a session of a PostgreSQL database: advisory locks, and rows. The number of an advisory lock is 64 bits of a hash
//! of its name. That is a function of the printed migration, so that a user's own transaction takes the same locks.
//!
//! The server ends a session that was silent (`idle_session_timeout`, `idle_in_transaction_session_timeout`). Whoever waits does so in the
//! server's own queue, for a second at a time.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};
use tokio_postgres::NoTls;

use super::connection::{BEGIN, Connection, OnMessage, ServerMessage, connect};
use super::dialect::Postgres;
use super::fault::{OWN_ROWS, State, no_tables, pooled, state};
use super::guarantees;
use super::schema::{self, of_type, types};
use crate::driver::identifier::quoted;
use crate::driver::own_table::KeyedTable;
use crate::driver::sql::dialect::AddressOf;
use crate::driver::sql::dialect::Tables;
use crate::driver::sql::fault::{Fault, lost};
use crate::driver::sql::host::Host;
use crate::driver::sql::pool::when_there_is_room;
use crate::driver::sql::session::{
    INTERRUPT, Named, Place, Rows, SessionDialect, SessionLocks, Way, Wire,
};
use crate::driver::sql::statement::{Answer, Statement, Value, column, name};
use crate::driver::within::within;
use crate::error::{Error, Result};
use crate::options::{Durability, Options};
use crate::port::{
    EndSink, Guarantee, HolderView, LockKey, LockState, Mode, RuntimeHandle, WaiterView,
};
use crate::runtime::sync::Mutex;

/// One client's view of the advisory locks in a PostgreSQL database. [`Sessions`](crate::Sessions) makes a store of locks of it.
pub type AdvisoryStore = SessionLocks<Postgres, Named<Postgres>>;
/// The same of the rows of a table, which are locks while they are locked.
pub type RowStore = SessionLocks<Postgres, Rows<Postgres>>;

/// The longest ttl that the server's settings for a silent session can hold.
const LONGEST_TTL: Duration = Duration::from_millis(i32::MAX as u64);

/// The connection of a session.
pub struct PostgresWire {
    address: Arc<AddressOf<Postgres>>,
    host: Host,
    runtime: RuntimeHandle,
    known: &'static [State],
    /// `None` once it was cut.
    live: Mutex<Option<Arc<Connection>>>,
    over: Arc<AtomicBool>,
}

impl Wire for PostgresWire {
    async fn ask(&self, statements: Vec<Statement>, decides: bool) -> Result<Answer, Fault> {
        let live = self.live.lock().clone();
        let ended = || lost(&*self.address, "the session has ended", false);
        live.ok_or_else(ended)?.send(&statements, decides, self.known).await
    }

    /// The server ends the connection when it has told the session.
    fn interrupt(&self) -> impl Future<Output = ()> + Send + 'static + use<> {
        let token = self.live.lock().as_ref().map(|live| live.client.cancel_token());
        let (address, host) = (self.address.clone(), self.host.clone());
        let runtime = self.runtime.clone();
        async move {
            let cancelled = async {
                if let Some(token) = token
                    && let Ok(mut stream) = connect(&address, &host, &runtime).await
                    && token.cancel_query_raw(Unclosed(&mut stream), NoTls).await.is_ok()
                {
                    let _ = stream.read(&mut [0]).await;
                }
            };
            within(&runtime, INTERRUPT, cancelled).await;
        }
    }

    fn cut(&self) {
        if let Some(live) = self.live.lock().take() {
            live.end();
        }
    }

    fn is_over(&self) -> bool {
        let closed = |live: &Arc<Connection>| live.client.is_closed();
        self.over.load(Ordering::Acquire) || self.live.lock().as_ref().is_none_or(closed)
    }
}

impl SessionDialect for Postgres {
    type Wire = PostgresWire;
    type Watch = Arc<AtomicBool>;

    const BEAT: &'static str = "SELECT pg_backend_pid()";
    const WAITS_SHORTLY: bool = true;
    const BEGIN_ROW: &'static str = BEGIN;
    const GUARANTEES: [&'static [Guarantee]; 2] = [guarantees::ADVISORY, guarantees::ROWS];
    const FREE_ALL: &'static str = "SELECT pg_backend_pid(), pg_advisory_unlock_all()::text";

    fn check(options: &Options) -> Result<()> {
        if options.durability == Durability::Relaxed {
            let message = "locks of a session are not written to the disk, and their tokens have to be; leave `durability` out";
            return Err(Error::invalid("durability", message));
        }
        if options.ttl > LONGEST_TTL {
            let message = "the server ends a session that was silent for 24 days at most; take a shorter `ttl`";
            return Err(Error::invalid("ttl", message));
        }
        Ok(())
    }

    fn refusal(mode: Mode, rows: bool) -> Option<&'static str> {
        match mode {
            Mode::Exclusive => None,
            Mode::Permit if rows => Some("a row is locked once; for permits use `postgres://`"),
            Mode::Permit => {
                Some("advisory locks of PostgreSQL do not count; for permits use `postgres://`")
            }
            Mode::Read | Mode::Write => rows.then_some(
                "rows that readers share let new readers pass a writer that waits; for readers and writers use `postgres+advisory://` or `postgres://`",
            ),
        }
    }

    fn known(on_own_table: bool) -> &'static [State] {
        if on_own_table { OWN_ROWS } else { &[] }
    }

    async fn open<W: Way<Self>>(
        store: &SessionLocks<Self, W>,
        ttl: Duration,
        ended: &EndSink,
    ) -> Result<(Connection, Host, Arc<AtomicBool>)> {
        let ttl = ttl.as_millis();
        // A session that waits is not idle; it ends when it is told of the grant, or when the server sees that its client has gone.
        let setup = format!(
            "SET idle_session_timeout = {ttl}; SET idle_in_transaction_session_timeout = {ttl}; SET tcp_user_timeout = {ttl};
             SET statement_timeout = 0; SET lock_timeout = 0;
             SELECT set_config('transaction_timeout', '0', false) WHERE current_setting('server_version_num')::integer >= 170000;
             SELECT set_config('client_connection_check_interval', '1000', false) WHERE version() ~* 'linux|darwin|bsd';
             {}",
            store.dialect.setup
        );
        let (over, ended) = (Arc::new(AtomicBool::new(false)), ended.clone());
        let is_over = over.clone();
        let on_message: OnMessage = Arc::new(move |message| {
            if let ServerMessage::End = message {
                is_over.store(true, Ordering::Release);
                ended();
            }
        });
        let (runtime, limit) = (&store.runtime, store.connect_timeout);
        store.dialect.pooling.refuse(&store.address, runtime, limit).await?;
        let address = &store.address;
        let open =
            || Connection::open_first(address, &setup, Some(on_message.clone()), runtime, limit);
        let (connection, host) = when_there_is_room(runtime, limit, open).await?;
        Ok((connection, host, over))
    }

    fn wire(
        connection: Connection,
        _: i64,
        (address, host): (Arc<AddressOf<Self>>, Host),
        over: Arc<AtomicBool>,
        known: &'static [State],
        runtime: RuntimeHandle,
        _: EndSink,
    ) -> PostgresWire {
        let live = Mutex::new(Some(Arc::new(connection)));
        PostgresWire { address, host, runtime, known, live, over }
    }

    async fn create(connection: &mut Connection, tables: &Tables) -> Result<(), Fault> {
        schema::create(connection, tables).await
    }

    fn missing(error: &Error) -> Option<Error> {
        matches!(state(error), "42P01" | "42883").then(no_tables)
    }

    fn pooled() -> Error {
        pooled()
    }

    fn was_interrupted(error: &Error) -> bool {
        state(error) == "57014"
    }

    fn was_too_short(_: &Error) -> bool {
        false
    }

    fn token(_: &Connection, tables: &Tables) -> String {
        format!("nextval('{}')", tables.tokens)
    }

    async fn advance(
        connection: &mut Connection,
        Tables { word, .. }: &Tables,
        rows: bool,
    ) -> Result<(), Fault> {
        // A token that is drawn in a transaction may not have reached the disk when the server crashes.
        let leap = if rows { format!("SELECT {word}_leap(); ") } else { String::new() };
        let asked = [Statement::bare(format!("{leap}SELECT {word}_advance()"))];
        connection.send(&asked, false, &[]).await.map(drop)
    }

    async fn prepare(
        connection: &mut Connection,
        texts: &[Arc<str>],
        _: Option<&Place>,
        known: &'static [State],
    ) -> Result<(), Fault> {
        connection.prepare(texts, known).await
    }

    /// Only then a token is drawn. Who waits does so for a second at most.
    fn named(Tables { word, .. }: &Tables, token: &str, shared: bool) -> [String; 3] {
        let end = if shared { "_shared" } else { "" };
        let waits = format!("'SELECT pg_advisory_lock{end}({word}_key($1))'");
        [
            format!(
                "SELECT pg_backend_pid(), CASE WHEN pg_try_advisory_lock{end}({word}_key($1)) THEN {token} ELSE 0 END"
            ),
            format!(
                "SELECT pg_backend_pid(), CASE WHEN {word}_wait({waits}, $1) > 0 THEN {token} END"
            ),
            format!("SELECT pg_backend_pid(), pg_advisory_unlock{end}({word}_key($1))"),
        ]
    }

    /// In order of arrival as far as the server shows it.
    fn look_named(Tables { word, .. }: &Tables, _: &str, lock: &LockKey) -> Vec<Statement> {
        let text = format!(
            "SELECT l.granted, l.mode, a.application_name,
                 (extract(epoch FROM clock_timestamp() - l.waitstart) * 1000)::bigint, l.pid
             FROM pg_locks AS l LEFT JOIN pg_stat_activity AS a ON a.pid = l.pid
             WHERE l.locktype = 'advisory' AND l.objsubid = 1
                 AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
                 AND (l.classid::bigint << 32 | l.objid::bigint) = {word}_key($1)
             ORDER BY l.granted DESC, l.waitstart, l.pid"
        );
        vec![Statement::kept(&text.into(), [name(lock.as_str())])]
    }

    async fn place(
        connection: &mut Connection,
        Tables { word, rows, tokens, .. }: &Tables,
        own: Option<&KeyedTable<'_>>,
        known: &'static [State],
    ) -> Result<Place, Fault> {
        let mark = String::new();
        let Some(own) = own else {
            return Ok(Place {
                table: rows.clone(),
                is_it: "t.name = $1".into(),
                mark,
                no_row: None,
            });
        };
        // Without it no row is a lock.
        let needed = format!("SELECT {word}_leap(), nextval('{tokens}')");
        connection.prepare(&[needed.into()], known).await?;
        let types = types(connection, own, &[own.key], known).await?;
        let is_it = format!("t.{} = {}", quoted('"', own.key), of_type("$1::text", &types[0]));
        Ok(Place { table: own.name('"'), is_it, mark, no_row: Some(own.no_row()) })
    }

    /// One that somebody has is skipped, or waited for, for a second at most, and taken then. A token is drawn only then.
    fn lock_row(place: &Place, Tables { word, .. }: &Tables, token: &str) -> [String; 2] {
        let Place { table, is_it, .. } = place;
        let locks = format!("SELECT FROM {table} AS t WHERE {is_it} FOR UPDATE");
        let waits = locks.replace('\'', "''");
        let locked =
            format!("WITH l AS MATERIALIZED ({locks} SKIP LOCKED) SELECT pg_backend_pid(),");
        [
            format!("{locked} (SELECT {token} FROM l)"),
            format!(
                "{locked} CASE WHEN {word}_wait('{waits}', $1) > 0 THEN (SELECT {token} FROM l) END"
            ),
        ]
    }

    fn roll_back() -> Vec<Statement> {
        vec![Statement::bare("ROLLBACK")]
    }

    /// In order of arrival as far as the server shows it. A holder writes its transaction there (`xmax`). A waiter has, or waits for, a lock of
    /// the server's on the place of the row.
    fn look_row(Place { table, is_it, .. }: &Place, _: &str, name: Value) -> Vec<Statement> {
        let text = format!(
            "WITH r AS MATERIALIZED (SELECT t.tableoid AS lies, t.xmax AS by, (t.ctid::text::point)[0]::integer AS page,
                     (t.ctid::text::point)[1]::smallint AS tuple FROM {table} AS t WHERE {is_it}),
                 l AS MATERIALIZED (SELECT * FROM pg_locks)
             SELECT w.granted, 'ExclusiveLock', a.application_name,
                 (extract(epoch FROM clock_timestamp() - w.since) * 1000)::bigint, w.pid
             FROM (SELECT true AS granted, NULL::timestamptz AS since, l.pid
                     FROM l JOIN r ON l.locktype = 'transactionid' AND l.granted AND l.transactionid = r.by
                 UNION ALL SELECT false, (SELECT min(x.waitstart) FROM l AS x WHERE x.pid = l.pid), l.pid
                     FROM l JOIN r ON l.locktype = 'tuple' AND l.relation = r.lies AND l.page = r.page AND l.tuple = r.tuple
                     WHERE l.database = (SELECT oid FROM pg_database WHERE datname = current_database())) AS w
                 LEFT JOIN pg_stat_activity AS a ON a.pid = w.pid
             ORDER BY w.granted DESC, w.since, w.pid"
        );
        vec![Statement::kept(&text.into(), [name])]
    }

    fn locked_names(Place { table, .. }: &Place) -> String {
        format!(
            "SELECT t.name FROM {table} AS t
             JOIN pg_locks AS l ON l.locktype = 'transactionid' AND l.granted AND l.transactionid = t.xmax
             WHERE t.name >= $1 AND starts_with(t.name, $1) ORDER BY t.name"
        )
    }

    fn is_old(seconds: u64) -> String {
        format!("made < clock_timestamp() - interval '{seconds} seconds'")
    }

    /// The server knows neither tokens nor what a client says of itself.
    fn state(answer: &Answer) -> Result<LockState> {
        let mut state = LockState::default();
        for row in answer.all() {
            let shared = column::<&str>(row, 1, "mode")? == "ShareLock";
            let mode = if shared { Mode::Read } else { Mode::Exclusive };
            let app = column::<Option<&str>>(row, 2, "application_name")?.unwrap_or_default();
            let backend = column::<i64>(row, 4, "pid")?;
            let info = serde_json::json!({ "app": app, "backend": backend });
            let info: Arc<str> = info.to_string().into();
            if column(row, 0, "granted")? {
                let (token, left, held_for, owner) = (None, None, None, None);
                state.holders.push(HolderView { mode, token, left, held_for, info, owner });
            } else {
                let waited = column::<Option<i64>>(row, 3, "waitstart")?.unwrap_or_default();
                let waiting_for = Duration::from_millis(u64::try_from(waited).unwrap_or_default());
                state.waiters.push(WaiterView { mode, info, waiting_for });
            }
        }
        state.kind = state.holders.first().map(|holder| holder.mode.kind()).unwrap_or_default();
        Ok(state)
    }
}

/// A stream that stays open when its writer closes it: a pooler forgets the request of a client that has gone.
struct Unclosed<'a, S>(&'a mut S);

impl<S: AsyncRead + Unpin> AsyncRead for Unclosed<'_, S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Unclosed<'_, S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut *self.0).poll_write(context, data)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_flush(context)
    }
}
