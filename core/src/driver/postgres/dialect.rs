//! The SQL of PostgreSQL. Numbers of the rules come from `port::limits`, as they do in every store.

use std::sync::Arc;
use std::time::Duration;

use super::connection::{BEGIN, Connection, MOST_BYTES, Pooling, SERVER, settings};
use super::fault::{FOREIGN, OWN_TABLE, State};
use super::guarantees;
use super::notices::Single;
use super::schema;
use crate::driver::datagram;
use crate::driver::own_table::OwnTable;
use crate::driver::record::Record;
use crate::driver::sql::address::Rules;
use crate::driver::sql::dialect::Dialect;
use crate::driver::sql::dialect::Layout;
use crate::driver::sql::dialect::Renewing;
use crate::driver::sql::dialect::Tables;
use crate::driver::sql::dialect::each;
use crate::driver::sql::fault::Fault;
use crate::driver::sql::foreign;
use crate::driver::sql::link::Link;
use crate::driver::sql::model::{Loaded, Outbox};
use crate::driver::sql::records::{load, names};
use crate::driver::sql::statement::{Answer, Row, Statement, Value};
use crate::driver::sql::waits::ahead_of_ours;
use crate::driver::tls::Tls;
use crate::error::{Error, Result};
use crate::fence::Token;
use crate::options::{Durability, Options};
use crate::port::limits::{COUNTER_TTLS, TOKEN_LEAD};
use crate::port::{Guarantee, LockKey, Notice};
use crate::runtime::sync::Mutex;

/// PostgreSQL: one connection for what is one statement, on which notices arrive too, and a few for transactions. Behind a pooler that keeps no
/// sessions a connection does one thing at a time, and a waiter looks for its turn.
pub struct Postgres {
    /// The first statements of each connection, the last of which answers whether the server takes no writes, and its version.
    pub(super) setup: String,
    /// Begins a transaction in a session that others use too, and may have left as they like.
    begin: Arc<str>,
    durability: Durability,
    pub(super) pooling: Pooling,
    pub(super) single: Mutex<Single>,
    /// Held by the one who connects.
    pub(super) connecting: tokio::sync::Mutex<()>,
}

/// How long the server keeps a row locked for a client that stands still within a transaction, in ms.
const STALLED: u32 = 1000;

/// A moment before the last token, from which on the plain cases leave what is to be refused to the long way.
const LAST_YEAR: &str = "clock_timestamp() < timestamptz '2255-01-01Z'";

pub(super) const RULES: Rules = Rules {
    schemes: &["postgres", "postgresql", "postgres+advisory", "postgres+row"],
    port: 5432,
    socket: |folder, port| format!("{folder}/.s.PGSQL.{port}"),
    malformed: || {
        Error::invalid(
            "url",
            "the URL must look like `postgres://user[:password]@host[:port][,host[:port]...]/database[?options]`; the host may be the folder of a socket, as `%2Frun%2Fpostgresql`",
        )
    },
};

impl Dialect for Postgres {
    type Connection = Connection;
    type Known = State;
    type Tls = Tls;

    const NAME: &'static str = "postgres";
    const RULES: &'static Rules = &RULES;
    const MARK: char = '"';
    const MOST_BYTES: usize = MOST_BYTES;
    const MOST_POOLED: usize = 4;
    const CLOCK: &'static str = schema::CLOCK;
    const ENDS: (&'static str, &'static str) = ("expires_at", "clock_timestamp()");
    const AMONG: &'static str = "name = ANY($1::text[])";
    const BEGINS: &'static str = "starts_with(name, $1)";
    const BESIDE: [&'static str; 3] = [""; 3];
    const AT_ONCE: &'static str = "";
    const RETURNS: bool = true;
    const OF_OWN_TABLE: &'static [State] = OWN_TABLE;
    const OF_FOREIGN: &'static [State] = FOREIGN;

    fn new(options: &Options) -> Result<Self> {
        let setup = format!("{} {SERVER}", settings(options, false)?);
        let (wait, local) = (row_wait(options.timeout), settings(options, true)?);
        let begin = format!(
            "{BEGIN}; SET LOCAL search_path TO DEFAULT; SET LOCAL statement_timeout TO DEFAULT; SET LOCAL role TO DEFAULT; {local}
             SET LOCAL lock_timeout = {wait}; SET LOCAL idle_in_transaction_session_timeout = {STALLED}"
        );
        let (durability, pooling) = (options.durability, Pooling::default());
        let (single, connecting) = (Mutex::default(), tokio::sync::Mutex::default());
        Ok(Self { setup, begin: begin.into(), durability, pooling, single, connecting })
    }

    fn tls(options: &Options) -> Result<Tls> {
        Tls::new(options)
    }

    fn guarantees(&self) -> &'static [Guarantee] {
        match self.durability {
            Durability::Durable => guarantees::DURABLE,
            Durability::Relaxed => guarantees::RELAXED,
        }
    }

    async fn begin(link: &Link<Self>) -> Result<()> {
        let Self { pooling, .. } = &link.dialect;
        let limit = link.connect_timeout;
        let keeps = pooling.keeps_sessions(&link.address, &link.runtime, limit);
        if !link.within_connect(Box::pin(keeps)).await? {
            return link.begin_shared().await;
        }
        link.single().await?;
        // What a transaction needs is there too, or connecting says what is wrong.
        link.put_back(link.take().await?);
        Ok(())
    }

    async fn connect(link: &Link<Self>) -> Result<Connection> {
        if link.dialect.pooling.is_shared() {
            return link.connect_shared().await;
        }
        let (setup, limit) = (link.patient_setup(), link.connect_timeout);
        let opened = Connection::open_first(&link.address, &setup, None, &link.runtime, limit);
        let connection = opened.await?.0;
        let texts = &link.texts;
        let kept = [&texts.lock, &texts.insert, &texts.store].into_iter().chain([
            &texts.cell_insert,
            &texts.cell_lock,
            &texts.cell_store,
        ]);
        let kept: Vec<_> = kept.cloned().chain([TELL.into()]).collect();
        connection.prepare(&kept, &[]).await.map_err(|fault| fault.failure.error)?;
        let types = |text| connection.types(text);
        schema::check(&link.tables, &types(&texts.store), &types(&texts.cell_store))?;
        Ok(connection)
    }

    /// Until something else is asked, a waiter learns of its turn by its next refresh.
    fn make_room(link: &Link<Self>) {
        link.dialect.single.lock().connection = None;
    }

    async fn ask_of(
        link: &Link<Self>,
        statements: Vec<Statement>,
        decides: bool,
        known: &'static [State],
    ) -> Result<Answer, Fault> {
        if link.dialect.pooling.is_shared() {
            return link.ask_pooled(statements, decides, known).await;
        }
        link.ask_single(&statements, decides, known).await
    }

    fn unless_there(_: &str, _: &str) -> String {
        "ON CONFLICT DO NOTHING".to_owned()
    }

    /// One row at least, for the clock.
    fn look(columns: &str, table: &str, which: &str) -> Vec<String> {
        vec![format!(
            "SELECT {columns}, c.now FROM (SELECT {} AS now) AS c LEFT JOIN {table} ON {which}",
            Self::CLOCK
        )]
    }

    /// The clock is read outside, and so after the row.
    fn lock(columns: &str, table: &str, which: &str) -> String {
        let clock = Self::CLOCK;
        format!(
            "SELECT l.*, {clock} FROM (SELECT {columns} FROM {table} WHERE {which} FOR UPDATE) AS l"
        )
    }

    fn make(Tables { table, .. }: &Tables) -> String {
        format!(
            "INSERT INTO {table} (name, version, owner, holder, token, granted_at, expires_at, last_token, counter_until, longest_lease)
             SELECT $1, 1, $2, $3, m.now, m.now, m.at + $4::bigint * interval '1 microsecond', m.now + $5::bigint,
                 m.now + $5::bigint + {COUNTER_TTLS} * $4::bigint, $4::bigint
             FROM (SELECT c.at, (extract(epoch FROM c.at) * 1000000)::bigint AS now FROM (SELECT clock_timestamp() AS at) AS c) AS m
             WHERE {LAST_YEAR} ON CONFLICT (name) DO NOTHING RETURNING token, last_token"
        )
    }

    fn take(Tables { table, .. }: &Tables) -> String {
        let (most, lead, clock) = (Token::MAX.get(), TOKEN_LEAD.as_micros(), Self::CLOCK);
        let first = format!("greatest(last_token + 1, {clock})");
        format!(
            "UPDATE {table} SET version = version + 1, kind = 'mutex', owner = $2, holder = $3, token = {first}, granted_at = {clock},
                 expires_at = clock_timestamp() + $4::bigint * interval '1 microsecond',
                 last_token = greatest({first}, least({first} + $5::bigint, {clock} + {lead})), longest_lease = $4::bigint,
                 counter_until = greatest(counter_until, {first} + {lead} + {COUNTER_TTLS} * $4::bigint)
             WHERE name = $1 AND rest IS NULL AND (owner IS NULL OR expires_at <= clock_timestamp())
                 AND last_token >= $6 AND last_token < {most} - 2 * {lead} AND {LAST_YEAR}
             RETURNING token, last_token"
        )
    }

    fn renew(tables: &Tables, holds: &[Renewing<'_>]) -> Vec<Statement> {
        let names = holds.iter().map(|hold| hold.name.to_owned()).collect();
        let owners = holds.iter().map(|hold| hold.owner.to_string()).collect();
        let leases = holds.iter().map(|hold| hold.ttl).collect();
        let values = [Value::Names(names), Value::Names(owners), Value::Ints(leases)];
        vec![Statement::kept(&renew(tables).into(), values)]
    }

    fn sweep_cells(cells: &str) -> String {
        let clock = Self::CLOCK;
        format!(
            "DELETE FROM {cells} WHERE name IN (SELECT name FROM {cells}
                 WHERE forget_after <= {clock} ORDER BY forget_after LIMIT 64 FOR UPDATE SKIP LOCKED)"
        )
    }

    async fn listen(link: &Link<Self>) -> Result<()> {
        if link.dialect.pooling.is_shared() { Ok(()) } else { link.begin_listening().await }
    }

    /// The server sends notices when the transaction is committed, also to clients that a pooler keeps from none.
    fn notify(
        link: &Link<Self>,
        _: &[Row],
        different: &[(&LockKey, &Record)],
        notices: &Outbox,
    ) -> (Vec<Option<Value>>, Vec<Statement>) {
        if link.dialect.pooling.is_shared() {
            for (lock, record) in different {
                link.expect(lock, 0, record);
            }
        }
        let beside = different.iter().map(|_| None).collect();
        if notices.is_empty() {
            return (beside, Vec::new());
        }
        let channels = notices.iter().map(|(channel, _)| channel.to_string()).collect();
        let texts = notices.iter().map(|(_, notice)| datagram::text(notice)).collect();
        let tell = Statement::kept(&TELL.into(), [Value::Names(channels), Value::Names(texts)]);
        (beside, vec![tell])
    }

    async fn look_for_turns(link: &Link<Self>) {
        link.look_for_turns().await;
    }

    fn close(&self) {
        drop(std::mem::take(&mut *self.single.lock()));
    }

    async fn own_table(connection: &mut Connection, own: &OwnTable<'_>) -> Result<Layout, Fault> {
        schema::layout(connection, own).await
    }

    fn foreign_columns(until: &str, since: &str, by: &str) -> String {
        let micros = |column: &str| format!("(extract(epoch FROM {column}) * 1000000)::bigint");
        let (micros_until, since) = (micros(until), micros(since));
        format!("{micros_until}, {since}, {by}::text, pg_typeof({until}) = 'timestamptz'::regtype")
    }

    fn foreign_key(value: &str, kind: &str) -> String {
        format!("{value}::{kind}")
    }

    fn foreign_times(micros: &str) -> [String; 3] {
        let never = "timestamp 'epoch'".to_owned();
        let moment = format!("{never} + {micros} * interval '1 microsecond'");
        let now = "date_trunc('milliseconds', timezone('utc', clock_timestamp()))".to_owned();
        [moment, never, now]
    }

    fn around_foreign(mut statements: Vec<Statement>, locks: bool) -> Vec<Statement> {
        if locks {
            let patience = foreign::PATIENCE.as_millis() / 2;
            statements.insert(0, Statement::bare(format!("SET LOCAL lock_timeout = {patience}")));
        }
        statements
    }
}

/// How long a transaction waits for a row, in ms.
fn row_wait(timeout: Duration) -> i32 {
    i32::try_from(timeout.as_millis()).unwrap_or(i32::MAX)
}

/// $1 names, $2 owner ids, $3 leases.
pub(super) fn renew(Tables { table, .. }: &Tables) -> String {
    let lease = |micros: &str| format!("{micros} * interval '1 microsecond'");
    let (longest, wanted) = (lease("f.longest_lease"), lease("r.ttl"));
    let ends = format!("greatest(least(f.expires_at, c.at + {longest}), c.at + {wanted})");
    let micros = |moment: &str| format!("(extract(epoch FROM {moment}) * 1000000)::bigint");
    let (until, now) = (micros(&ends), micros("c.at"));
    format!(
        "UPDATE {table} AS f SET version = f.version + 1, expires_at = {ends}, longest_lease = greatest(f.longest_lease, r.ttl),
             counter_until = greatest(f.counter_until, {until} + {COUNTER_TTLS} * r.ttl)
         FROM unnest($1::text[], $2::text[], $3::bigint[]) AS r(name, owner, ttl), (SELECT clock_timestamp() AS at) AS c
         WHERE f.name = r.name AND f.owner = r.owner AND f.expires_at > c.at
         RETURNING f.name, f.token, {} - {now}",
        micros("f.expires_at"),
    )
}

/// $1 channels, $2 texts.
const TELL: &str = "SELECT pg_notify(channel, notice) FROM unnest($1::text[], $2::text[]) AS notices(channel, notice)";

impl Link<Postgres> {
    /// A connection that waits for locks as long as for anything else.
    pub(super) fn patient_setup(&self) -> String {
        let wait = row_wait(self.timeout);
        format!(
            "SET lock_timeout = {wait}; SET idle_in_transaction_session_timeout = {STALLED}; {}",
            self.dialect.setup
        )
    }

    /// Makes sure that the tables serve, where the session is not this client's.
    async fn begin_shared(&self) -> Result<()> {
        self.use_pool_alone();
        let mut connection = self.take().await?;
        let found = schema::find(&mut connection, &self.tables, self.create);
        let found = self.within_connect(async { Ok(found.await) }).await?;
        found.map_err(|fault| fault.failure.error)?;
        self.put_back(connection);
        Ok(())
    }

    async fn connect_shared(&self) -> Result<Connection> {
        let (address, limit) = (&self.address, self.connect_timeout);
        let opened = Connection::open_first(address, SERVER, None, &self.runtime, limit).await?;
        let types = [(&self.texts.store, schema::WRITTEN), (&self.texts.cell_store, schema::CELL)];
        let types = types.map(|(text, columns)| {
            (text.clone(), columns.iter().map(|(_, kind)| kind.clone()).collect())
        });
        Ok(opened.0.sharing(&self.dialect.begin, types))
    }

    /// Tells those of this client that wait whose turn it is: one whose ticket has become a hold, and the head of a queue where the lock is open.
    async fn look_for_turns(&self) {
        let locks = self.waits_at();
        if locks.is_empty() {
            return;
        }
        let asked = self.ask(each(&self.texts.look, &[names(&locks)]), false).await;
        let Ok(answer) = asked else { return };
        for Loaded { lock, record } in load(&answer.all(), &locks) {
            let Ok(record) = record else { continue };
            if let Some(ahead) = ahead_of_ours(&record, &self.channel) {
                self.are_ahead(&lock, ahead);
            }
            let head = record.tickets.front().filter(|_| record.open_since.is_some());
            let turns = record.holders.iter().map(|holder| holder.owner);
            let turns = turns.chain(head.map(|ticket| ticket.owner));
            self.tell_self(turns.map(|owner| Notice::Open { owner }));
        }
    }
}
