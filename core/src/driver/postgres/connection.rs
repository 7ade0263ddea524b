//! One connection to a server that takes writes, set up; and the check for a pooler before it that hands each transaction to another session.
//! Behind one, each transaction begins with the settings, statements are not prepared, and the connection does not listen.

use std::collections::BTreeMap;
use std::error::Error as StdError;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::{BufMut, BytesMut};
use futures_channel::oneshot;
use futures_util::TryStreamExt;
use futures_util::future::{Either, join_all, select, try_join_all};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};
use tokio_postgres::{AsyncMessage, Client, Config, NoTls, SimpleQueryMessage};

use super::fault::{State, judge, judge_as, pooled};
use crate::driver::identifier::{check, quoted};
use crate::driver::socket_file::SocketFile;
use crate::driver::sql::address::Address;
use crate::driver::sql::dialect;
use crate::driver::sql::fault::{Fault, absent, read_only};
use crate::driver::sql::host::Host;
use crate::driver::sql::host::first_host;
use crate::driver::sql::pool::when_there_is_room;
use crate::driver::sql::statement::{Answer, Kind, Row, Statement, Value};
use crate::driver::tls::Tls;
use crate::driver::within::within;
use crate::driver::{hosts, tcp};
use crate::error::{Code, Error, Result};
use crate::options::{Durability, Options};
use crate::port::RuntimeHandle;
use crate::runtime::sync::Mutex;

/// A connection that was silent for so long is asked whether it is still there, and has so long to answer: what stands between may
/// have dropped it without a word.
pub(super) const FRESH: Duration = Duration::from_secs(5);
pub(super) const PATIENCE: Duration = Duration::from_millis(500);
/// How many bytes of a name PostgreSQL keeps.
pub(super) const MOST_BYTES: usize = 63;

/// Whether the server takes no writes, and its version.
pub(super) const SERVER: &str = "SELECT CASE WHEN pg_is_in_recovery() THEN 'on' ELSE current_setting('default_transaction_read_only') END,
    current_setting('server_version_num')";

/// Rows do not depend on what was seen before: each statement sees the newest, whatever the database's own default.
pub(super) const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE";
const COMMIT: &str = "COMMIT";
const ROLLBACK: &str = "ROLLBACK";

/// How long a plain case may wait for a row, in ms: it has its connection to itself no longer than this.
pub(super) const PLAIN_WAIT: u32 = 50;

/// How often two connections behind a pooler are compared.
const ROUNDS: u32 = 8;

/// The callback for the messages of a connection and for its end.
pub(super) type OnMessage = Arc<dyn Fn(ServerMessage) + Send + Sync>;

/// An event on a connection: a message or the end.
pub(super) enum ServerMessage {
    /// A message on one of its channels.
    Notice(String),
    /// Nothing more.
    End,
}

/// A connection to a server that takes writes. It ends when this is dropped.
pub struct Connection {
    pub(super) client: Client,
    /// The servers, as they are shown.
    server: String,
    prepared: Mutex<BTreeMap<Arc<str>, tokio_postgres::Statement>>,
    /// Behind a pooler that gives its session to others between transactions.
    shared: Option<Shared>,
    /// Its end is what counts.
    open: Mutex<Option<oneshot::Sender<()>>>,
}

/// The begin of a transaction and the types of values, for a connection that shares its session.
pub(super) struct Shared {
    /// Begins a transaction with the settings of a session.
    pub(super) begin: Arc<str>,
    /// The types that kept statements take, where the values do not say it.
    pub(super) types: [(Arc<str>, Vec<Type>); 2],
    is_in_transaction: bool,
}

/// The byte stream of a connection.
pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

impl Connection {
    /// A connection to the first server that takes writes, in at most `limit`.
    pub(super) async fn open_first(
        address: &Address<Tls>,
        setup: &str,
        on_message: Option<OnMessage>,
        runtime: &RuntimeHandle,
        limit: Duration,
    ) -> Result<(Self, Host)> {
        let open = |host: Host| {
            let on_message = on_message.clone();
            async move { Self::open(address, &host, setup, on_message, runtime).await }
        };
        first_host(&address.hosts, &address.used, runtime, limit, open).await
    }

    /// Connects to a server, and has it read `setup`, of which the last statement answers whether it takes no writes and its version.
    async fn open(
        address: &Address<Tls>,
        host: &Host,
        setup: &str,
        on_message: Option<OnMessage>,
        runtime: &RuntimeHandle,
    ) -> Result<Self> {
        let stream = connect(address, host, runtime).await?;
        let fault = |error: tokio_postgres::Error| judge(address, &error, false).failure.error;
        let mut config = Config::new();
        config.user(&address.user).dbname(&address.database).application_name("fencelock");
        config.ssl_mode(tokio_postgres::config::SslMode::Disable);
        if let Some(password) = address.password() {
            config.password(password);
        }
        let (client, connection) = config.connect_raw(stream, NoTls).await.map_err(fault)?;
        let ((open, left), used) = (oneshot::channel(), Arc::new(AtomicBool::new(false)));
        runtime.spawn(Box::pin(carry(connection, left, on_message, used.clone())));
        let answers = client.simple_query(setup).await.map_err(fault)?;
        let last = answers.iter().rev().find_map(|answer| match answer {
            SimpleQueryMessage::Row(row) => Some(row),
            _ => None,
        });
        let word = |at| last.and_then(|row| row.get(at)).unwrap_or_default();
        if word(0) != "off" {
            return Err(read_only().with("server", host.to_string()));
        }
        // As a number: 12.3 is 120003.
        if word(1).parse::<u32>().is_ok_and(|version| version < 120_000) {
            let message = "the server is too old: PostgreSQL 12 or newer is needed";
            return Err(Error::new(Code::Unsupported, message).with("server", host.to_string()));
        }
        used.store(true, Ordering::Release);
        let (server, open) = (address.to_string(), Mutex::new(Some(open)));
        Ok(Self { client, server, prepared: Mutex::default(), shared: None, open })
    }

    /// The same where the session is shared: it sets nothing there.
    pub(super) fn sharing(self, begin: &Arc<str>, types: [(Arc<str>, Vec<Type>); 2]) -> Self {
        let shared = Shared { begin: begin.clone(), types, is_in_transaction: false };
        Self { shared: Some(shared), ..self }
    }

    /// Ends it, whoever has it yet.
    pub(super) fn end(&self) {
        drop(self.open.lock().take());
    }

    /// Prepares statements, all in one flight.
    pub(super) async fn prepare(&self, texts: &[Arc<str>], known: &[State]) -> Result<(), Fault> {
        let prepared = try_join_all(texts.iter().map(|text| self.client.prepare(text))).await;
        let prepared = prepared.map_err(|error| judge_as(&self.server, &error, false, known))?;
        self.prepared.lock().extend(texts.iter().cloned().zip(prepared));
        Ok(())
    }

    /// The types that a prepared statement takes.
    pub(super) fn types(&self, text: &str) -> Vec<Type> {
        let prepared = self.prepared.lock();
        prepared.get(text).map(|statement| statement.params().to_vec()).unwrap_or_default()
    }

    /// These statements, in a transaction of their own unless they are part of one or the session is this connection's.
    fn alone(&mut self, statements: &[Statement]) -> Option<Vec<Statement>> {
        let shared = self.shared.as_mut()?;
        let is = |statement: Option<&Statement>, texts: &[&str]| {
            statement.is_some_and(|statement| texts.contains(&&*statement.text))
        };
        let begins = is(statements.first(), &[&shared.begin]);
        let is_part = begins || shared.is_in_transaction;
        shared.is_in_transaction = is_part && !is(statements.last(), &[COMMIT, ROLLBACK]);
        let hasty = format!("SET LOCAL lock_timeout = {PLAIN_WAIT}");
        let before = [Statement::bare(shared.begin.clone()), Statement::bare(hasty)];
        let each = before.into_iter().chain(statements.iter().cloned());
        (!is_part).then(|| each.chain([Statement::bare(COMMIT)]).collect())
    }

    /// Sends statements in one flight: what is polled first is sent first. The server undoes what follows an error in a transaction.
    pub(super) async fn send(
        &self,
        statements: &[Statement],
        decides: bool,
        known: &[State],
    ) -> Result<Answer, Fault> {
        let is_new = |statement: &&Statement| {
            statement.kind == Kind::Kept
                && self.shared.is_none()
                && !self.prepared.lock().contains_key(&statement.text)
        };
        let new: Vec<_> = statements.iter().filter(is_new).map(|it| it.text.clone()).collect();
        if !new.is_empty() {
            self.prepare(&new, known).await?;
        }
        let asked = join_all(statements.iter().map(|statement| self.send_one(statement))).await;
        let mut answer = Answer::default();
        for answered in asked {
            let answered = answered.map_err(|error| judge_as(&self.server, &error, decides, known));
            if let Some((rows, changed)) = answered? {
                answer.sets.push(rows);
                answer.changed = changed;
            }
        }
        Ok(answer)
    }

    /// The rows of the answer, and how many were changed; `None` for statements that have neither.
    async fn send_one(
        &self,
        Statement { text, values, kind }: &Statement,
    ) -> Result<Option<(Vec<Row>, u64)>, tokio_postgres::Error> {
        if *kind == Kind::Bare {
            return self.client.batch_execute(text).await.map(|()| None);
        }
        let prepared = self.prepared.lock().get(text).cloned();
        let stream = if let Some(prepared) = prepared {
            self.client.query_raw(&prepared, values).await?
        } else {
            let kept = self.shared.iter().flat_map(|shared| &shared.types);
            let kept = kept.filter(|(kept, _)| kept == text).flat_map(|(_, types)| types).cloned();
            let types = kept.map(Some).chain(std::iter::repeat(None));
            let typed = values.iter().zip(types);
            let typed = typed.map(|(value, kept)| (value, kept.unwrap_or_else(|| type_of(value))));
            self.client.query_typed_raw(text, typed).await?
        };
        let (mut stream, mut rows) = (pin!(stream), Vec::new());
        while let Some(row) = stream.try_next().await? {
            rows.push(Row((0..row.len()).map(|at| read(&row, at)).collect()));
        }
        Ok(Some((rows, stream.rows_affected().unwrap_or_default())))
    }
}

impl dialect::Connection for Connection {
    type Known = State;

    async fn ask_of(
        &mut self,
        statements: &[Statement],
        decides: bool,
        known: &'static [State],
    ) -> Result<Answer, Fault> {
        let alone = self.alone(statements);
        self.send(alone.as_deref().unwrap_or(statements), decides, known).await
    }

    fn transaction(&self) -> [Vec<Statement>; 3] {
        let begin =
            self.shared.as_ref().map_or_else(|| BEGIN.into(), |shared| shared.begin.clone());
        [begin, COMMIT.into(), ROLLBACK.into()].map(|text| vec![Statement::bare(text)])
    }

    async fn is_sound(&mut self, idle: Duration, runtime: &RuntimeHandle) -> bool {
        let asked = within(runtime, PATIENCE, self.client.batch_execute(""));
        !self.client.is_closed() && (idle < FRESH || matches!(asked.await, Some(Ok(()))))
    }
}

/// The settings of a session, or of one transaction.
pub(super) fn settings(options: &Options, is_local: bool) -> Result<String> {
    let mut set = Vec::new();
    if !options.schema.is_empty() {
        check("schema", &options.schema, MOST_BYTES)?;
        // A text with an E before it reads the same whatever `standard_conforming_strings` is.
        let path = quoted('"', &options.schema).replace('\\', "\\\\").replace('\'', "''");
        set.push(("search_path", format!("E'{path}'")));
    }
    let kept = "CASE current_setting('synchronous_commit') WHEN 'off' THEN 'on' ELSE current_setting('synchronous_commit') END";
    let commit = match options.durability {
        Durability::Durable => kept,
        Durability::Relaxed => "'off'",
    };
    // Few rows that change all the time mislead a planner; and each statement here has one good plan. Where it has to scan after all, that
    // counts as so dear that the server would compile it, which takes a hundred milliseconds.
    let fixed = [
        ("TimeZone", "'UTC'"),
        ("enable_seqscan", "'off'"),
        ("plan_cache_mode", "'force_generic_plan'"),
        ("jit", "'off'"),
        ("synchronous_commit", commit),
    ];
    set.extend(fixed.map(|(name, value)| (name, value.to_owned())));
    let one = |(name, value): (&str, String)| format!("set_config('{name}', {value}, {is_local})");
    Ok(format!("SELECT {};", set.into_iter().map(one).collect::<Vec<_>>().join(", ")))
}

/// Connects to a server; nothing is said there yet.
pub(super) async fn connect(
    address: &Address<Tls>,
    host: &Host,
    runtime: &RuntimeHandle,
) -> Result<Box<dyn Stream>> {
    let absent = |error: std::io::Error| absent(host, &error.to_string());
    match host {
        Host::Unix(path) => {
            let stream = SocketFile::connect(path).await.map_err(absent)?;
            Ok(Box::new(stream))
        }
        Host::Tcp(hosts::Host { name, port }) => {
            let mut stream = tcp::connect(name, *port, runtime).await.map_err(absent)?;
            let Some(tls) = &address.tls else { return Ok(Box::new(stream)) };
            // The protocol's request for TLS: its length and its number; the answer is one letter.
            stream.write_all(&[0, 0, 0, 8, 4, 210, 22, 47]).await.map_err(absent)?;
            let mut answer = [0];
            stream.read_exact(&mut answer).await.map_err(absent)?;
            if answer != *b"S" {
                let message = "the server has no TLS, so what is sent there could be read and changed; set it up there, or add `sslmode=disable` if the network between is trusted";
                let error = Error::new(Code::Unavailable, message).with("server", host.to_string());
                return Err(error.with_retryable(false));
            }
            Ok(Box::new(tls.secure(stream, name, *port).await?))
        }
    }
}

/// Runs the connection until it ends or is not wanted any more. The end of one that was refused is no news.
async fn carry(
    mut connection: tokio_postgres::Connection<Box<dyn Stream>, tokio_postgres::tls::NoTlsStream>,
    left: oneshot::Receiver<()>,
    on_message: Option<OnMessage>,
    used: Arc<AtomicBool>,
) {
    let messages = async {
        while let Some(Ok(message)) = poll_fn(|context| connection.poll_message(context)).await {
            if let (AsyncMessage::Notification(notice), Some(on_message)) = (message, &on_message) {
                on_message(ServerMessage::Notice(notice.payload().to_owned()));
            }
        }
    };
    // Asked first: a connection whose client goes says goodbye if it can do so at once.
    let ended = matches!(select(pin!(messages), left).await, Either::Left(_));
    // Before anybody is told: it must not be taken for a sound one.
    drop(connection);
    if let Some(on_message) = on_message.filter(|_| ended && used.load(Ordering::Acquire)) {
        on_message(ServerMessage::End);
    }
}

/// PostgreSQL counts from the year 2000, in µs.
const EPOCH: i64 = 946_684_800_000_000;
/// The last microsecond it knows, in the year 294276.
const LAST: i64 = 9_223_371_331_199_999_999;

/// A `timestamptz`, in µs since 1970.
struct Moment(i64);

impl FromSql<'_> for Moment {
    fn from_sql(_: &Type, raw: &[u8]) -> Result<Self, Box<dyn StdError + Sync + Send>> {
        Ok(Self(i64::from_be_bytes(raw.try_into()?).saturating_add(EPOCH)))
    }

    fn accepts(of: &Type) -> bool {
        *of == Type::TIMESTAMPTZ
    }
}

/// A column's value.
fn read(row: &tokio_postgres::Row, at: usize) -> Value {
    fn of<'a, T: FromSql<'a> + Into<Value>>(row: &'a tokio_postgres::Row, at: usize) -> Value {
        row.try_get::<_, Option<T>>(at).map_or(Value::Unread, Value::from)
    }
    match *row.columns()[at].type_() {
        Type::BOOL => of::<bool>(row, at),
        Type::INT4 => of::<i32>(row, at),
        Type::INT8 => of::<i64>(row, at),
        Type::TIMESTAMPTZ => of::<Moment>(row, at),
        ref kind if <&str as FromSql<'_>>::accepts(kind) => of::<&str>(row, at),
        _ => Value::Unread,
    }
}

impl From<bool> for Value {
    fn from(truth: bool) -> Self {
        Self::Int(truth.into())
    }
}

impl From<i32> for Value {
    fn from(number: i32) -> Self {
        Self::Int(number.into())
    }
}

impl From<Moment> for Value {
    fn from(Moment(micros): Moment) -> Self {
        Self::Int(micros)
    }
}

/// The type of a value in a statement that is not prepared.
fn type_of(value: &Value) -> Type {
    match value {
        Value::Int(_) => Type::INT8,
        Value::Names(_) => Type::TEXT_ARRAY,
        Value::Ints(_) => Type::INT8_ARRAY,
        _ => Type::TEXT,
    }
}

impl ToSql for Value {
    fn to_sql(
        &self,
        of: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn StdError + Sync + Send>> {
        match (self, of) {
            (Self::Null, _) => return Ok(IsNull::Yes),
            (Self::Int(number), &Type::INT4) => return i32::try_from(*number)?.to_sql(of, out),
            (Self::Int(number), &Type::INT8) => return number.to_sql(of, out),
            (Self::Int(number), &Type::TIMESTAMPTZ) => out.put_i64((number - EPOCH).min(LAST)),
            (Self::Text(text) | Self::Name(text), of) if <&str as ToSql>::accepts(of) => {
                return text.to_sql(of, out);
            }
            (Self::Names(names), &Type::TEXT_ARRAY) => return names.to_sql(of, out),
            (Self::Ints(numbers), &Type::INT8_ARRAY) => return numbers.to_sql(of, out),
            _ => return Err("a column is of another type".into()),
        }
        Ok(IsNull::No)
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

/// Whether the server keeps a session for each connection, once that is known: a pooler may give each transaction another one.
#[derive(Default)]
pub(super) struct Pooling(OnceLock<bool>);

impl Pooling {
    /// Whether a pooler was found that keeps no sessions.
    pub(super) fn is_shared(&self) -> bool {
        self.0.get() == Some(&false)
    }

    /// Refuses such a pooler.
    pub(super) async fn refuse(
        &self,
        address: &Address<Tls>,
        runtime: &RuntimeHandle,
        limit: Duration,
    ) -> Result<()> {
        // Only that there is none is remembered: a pooler may be set up anew.
        if self.0.get().is_none() && !keeps_sessions(address, runtime, limit).await? {
            return Err(pooled());
        }
        self.0.get_or_init(|| true);
        Ok(())
    }

    /// Looks for one, once.
    pub(super) async fn keeps_sessions(
        &self,
        address: &Address<Tls>,
        runtime: &RuntimeHandle,
        limit: Duration,
    ) -> Result<bool> {
        if let Some(keeps) = self.0.get() {
            return Ok(*keeps);
        }
        let keeps = keeps_sessions(address, runtime, limit).await?;
        Ok(*self.0.get_or_init(|| keeps))
    }
}

/// Looks for such a pooler by connections that set nothing: a setting would stay in a session that others use.
async fn keeps_sessions(
    address: &Address<Tls>,
    runtime: &RuntimeHandle,
    limit: Duration,
) -> Result<bool> {
    let open = || Connection::open_first(address, SERVER, None, runtime, limit);
    // Both or none: clients that hold one each would wait for each other.
    let both = || async {
        let one = open().await?.0;
        let two = if is_direct(&one.client).await { None } else { Some(open().await?.0) };
        Ok((one, two))
    };
    let keeps = match when_there_is_room(runtime, limit, both).await? {
        (_, None) => Ok(true),
        (one, Some(two)) => keep_apart(&one.client, &two.client, runtime).await,
    };
    keeps.map_err(|error| judge(address, &error, false).failure.error)
}

/// Whether the server itself answers: it names the process for a session when that begins, so that it can be told to cancel. A pooler names one of
/// its own.
async fn is_direct(client: &Client) -> bool {
    let (mut to_us, mut from_client) = tokio::io::duplex(64);
    let mut request = [0; 16];
    let cancelled = client.cancel_token().cancel_query_raw(&mut from_client, NoTls).await;
    let named = cancelled.is_ok() && to_us.read_exact(&mut request).await.is_ok();
    // Behind the request's length and its number.
    let [_, _, _, _, _, _, _, _, process @ .., _, _, _, _] = request;
    let process = i32::from_be_bytes(process).to_string();
    named && backend(client, "").await.is_ok_and(|answers| answers == Some(process))
}

/// Whether two connections have a session each. Where others use the pooler too, one of them may get the session it had before.
async fn keep_apart(
    one: &Client,
    two: &Client,
    runtime: &RuntimeHandle,
) -> std::result::Result<bool, tokio_postgres::Error> {
    for _ in 0..ROUNDS {
        // Twice: of a pooler that gives its two idle sessions out in turn, one connection would meet the same one in each round.
        let before = backend(one, "").await?;
        if backend(one, "").await? != before {
            return Ok(false);
        }
        let other = backend(two, "BEGIN; ").await?;
        // While the other one has a transaction open, which keeps a session for it. A session of its own answers at once; where clients wait for
        // each other's, none does.
        let again = async { if other == before { Ok(None) } else { backend(one, "").await } };
        let again = within(runtime, PATIENCE, again).await;
        two.batch_execute(COMMIT).await?;
        if again.transpose()?.flatten() != before {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The number of the process that answers, behind these statements.
async fn backend(
    client: &Client,
    before: &str,
) -> std::result::Result<Option<String>, tokio_postgres::Error> {
    let answers = client.simple_query(&format!("{before}SELECT pg_backend_pid()")).await?;
    Ok(answers.iter().find_map(|answer| match answer {
        SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
        _ => None,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_exact() {
        for moment in [0, 1_700_000_000_123_457, i64::MAX] {
            let mut out = BytesMut::new();
            Value::Int(moment).to_sql(&Type::TIMESTAMPTZ, &mut out).unwrap();
            let Moment(read) = Moment::from_sql(&Type::TIMESTAMPTZ, &out).unwrap();
            assert!(read == moment || moment == i64::MAX && read > 1 << 62, "{moment:?}");
        }
        let text = Value::from("0011");
        assert!(text.to_sql(&Type::INT8, &mut BytesMut::new()).is_err());
    }
}
