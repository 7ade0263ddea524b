//! The SQL of MySQL and MariaDB. Numbers of the rules come from `port::limits`, as they do in every store.
//!
//! A statement sets columns from left to right, and each expression sees what is set already.

use std::sync::atomic::{AtomicBool, Ordering};

use mysql_async::SslOpts;

use super::connection::{self, Connection};
use super::fault::{FOREIGN, Number, OWN_TABLE, other_shape};
use super::guarantees;
use super::schema::{self, MOST_BYTES};
use crate::driver::own_table::OwnTable;
use crate::driver::record::Record;
use crate::driver::sql::address::Rules;
use crate::driver::sql::dialect::Dialect;
use crate::driver::sql::dialect::Layout;
use crate::driver::sql::dialect::Renewing;
use crate::driver::sql::dialect::Tables;
use crate::driver::sql::fault::Fault;
use crate::driver::sql::link::Link;
use crate::driver::sql::model::Outbox;
use crate::driver::sql::statement::{Answer, Row, Statement, Value, name};
use crate::error::{Error, Result};
use crate::fence::Token;
use crate::options::{Durability, Options};
use crate::port::limits::{COUNTER_TTLS, TOKEN_LEAD};
use crate::port::{Guarantee, LockKey};

/// MySQL and MariaDB: each connection does one thing at a time, so there are as many as are needed at once. They wake nobody.
pub struct Mysql {
    /// Whether the server writes its log at each commit.
    durable: AtomicBool,
}

/// A moment before the last token, from which on the plain cases leave what is to be refused to the long way: 2255-01-01.
const LAST_YEAR: u64 = 8_993_808_000_000_000;
/// The moment that times are counted from.
const EPOCH: &str = "TIMESTAMP'1970-01-01 00:00:00'";
/// The time in a row whose lock nobody has ever held. Nothing earlier fits a `TIMESTAMP` of every time zone.
const NEVER: &str = "TIMESTAMP'1970-01-03 00:00:00'";

pub(super) const RULES: Rules = Rules {
    schemes: &["mysql", "mariadb", "mysql+getlock", "mysql+row"],
    port: 3306,
    socket: |path, _| path,
    malformed: || {
        Error::invalid(
            "url",
            "the URL must look like `mysql://user[:password]@host[:port][,host[:port]...]/database[?options]`; the host may be the path of a socket, as `%2Frun%2Fmysqld%2Fmysqld.sock`",
        )
    },
};

/// Refuses what would change nothing.
pub(super) fn check_durability(options: &Options) -> Result<()> {
    if options.durability == Durability::Relaxed {
        let message = "MySQL and MariaDB have this for the whole server, not for a session; leave `durability` out, and see `innodb_flush_log_at_trx_commit` there";
        return Err(Error::invalid("durability", message));
    }
    Ok(())
}

impl Dialect for Mysql {
    type Connection = Connection;
    type Known = Number;
    type Tls = SslOpts;

    const NAME: &'static str = "mysql";
    const RULES: &'static Rules = &RULES;
    const MARK: char = '`';
    const MOST_BYTES: usize = MOST_BYTES;
    const MOST_POOLED: usize = 5;
    const CLOCK: &'static str = schema::CLOCK;
    const ENDS: (&'static str, &'static str) = ("ends", Self::CLOCK);
    const AMONG: &'static str = "name IN ($1)";
    const BEGINS: &'static str = "LEFT(name, LENGTH($1)) = $1";
    const BESIDE: [&'static str; 3] = [", version, notices", ", notices = $13", ", notices = NULL"];
    const AT_ONCE: &'static str = " NOWAIT";
    const RETURNS: bool = false;
    const OF_OWN_TABLE: &'static [Number] = OWN_TABLE;
    const OF_FOREIGN: &'static [Number] = FOREIGN;

    fn new(options: &Options) -> Result<Self> {
        check_durability(options)?;
        Ok(Self { durable: AtomicBool::new(true) })
    }

    fn tls(options: &Options) -> Result<SslOpts> {
        connection::tls(options)
    }

    fn guarantees(&self) -> &'static [Guarantee] {
        if self.durable.load(Ordering::Relaxed) { guarantees::DURABLE } else { guarantees::RELAXED }
    }

    fn warning(&self) -> Option<&'static str> {
        (!self.durable.load(Ordering::Relaxed)).then_some(
            "the server does not write its log at each commit (`innodb_flush_log_at_trx_commit`): a crash may undo the last grants",
        )
    }

    async fn begin(link: &Link<Self>) -> Result<()> {
        let mut connection = link.take().await?;
        let found = schema::find(&mut connection, &link.tables, link.create);
        let found = link.within_connect(async { Ok(found.await) }).await?;
        let other = found.map_err(|fault| fault.failure.error)?;
        if let Some((column, kind)) = other {
            return Err(other_shape(&column, kind));
        }
        link.dialect.durable.store(connection.durable, Ordering::Relaxed);
        link.put_back(connection);
        Ok(())
    }

    async fn connect(link: &Link<Self>) -> Result<Connection> {
        let limit = link.connect_timeout;
        Ok(Connection::open_first(&link.address, &link.runtime, limit).await?.0)
    }

    async fn ask_of(
        link: &Link<Self>,
        statements: Vec<Statement>,
        decides: bool,
        known: &'static [Number],
    ) -> Result<Answer, Fault> {
        link.ask_pooled(statements, decides, known).await
    }

    fn unless_there(table: &str, key: &str) -> String {
        format!("ON DUPLICATE KEY UPDATE {table}.{key} = {table}.{key}")
    }

    fn look(columns: &str, table: &str, which: &str) -> Vec<String> {
        let look = format!("SELECT {columns} FROM {table} FORCE INDEX (PRIMARY) WHERE {which}");
        vec![look, format!("SELECT {}", Self::CLOCK)]
    }

    fn lock(columns: &str, table: &str, which: &str) -> String {
        let clock = Self::CLOCK;
        format!(
            "SELECT {columns}, {clock} FROM {table} FORCE INDEX (PRIMARY) WHERE {which} FOR UPDATE"
        )
    }

    /// It answers the token as the last id; no row is changed if there is one.
    fn make(Tables { table, .. }: &Tables) -> String {
        let clock = Self::CLOCK;
        format!(
            "INSERT INTO {table} (name, version, owner, holder, token, granted_at, ends, last_token, counter_until, longest_lease)
             SELECT $1, 1, $2, $3, LAST_INSERT_ID(m.now), m.now, m.now + $4, m.now + $5, m.now + $5 + {COUNTER_TTLS} * $4, $4
             FROM (SELECT {clock} AS now) AS m WHERE m.now < {LAST_YEAR} ON DUPLICATE KEY UPDATE {table}.name = {table}.name"
        )
    }

    /// It answers the token as the last id.
    fn take(Tables { table, .. }: &Tables) -> String {
        let (most, lead, clock) = (Token::MAX.get(), TOKEN_LEAD.as_micros(), Self::CLOCK);
        format!(
            "UPDATE {table} SET version = version + 1, kind = 'mutex', owner = $2, holder = $3, notices = NULL,
                 token = GREATEST(last_token + 1, {clock}), granted_at = {clock}, ends = {clock} + $4, longest_lease = $4,
                 counter_until = GREATEST(counter_until, token + {lead} + {COUNTER_TTLS} * $4), last_token = LAST_INSERT_ID(token) + $5
             WHERE name = $1 AND rest IS NULL AND (owner IS NULL OR ends <= {clock}) AND last_token >= $6
                 AND last_token + 1 + $5 <= {clock} + {lead} AND last_token < {most} - 2 * {lead} AND {clock} < {LAST_YEAR}"
        )
    }

    fn renew(Tables { table, .. }: &Tables, holds: &[Renewing<'_>]) -> Vec<Statement> {
        let clock = Self::CLOCK;
        let text: std::sync::Arc<str> = format!(
            "UPDATE {table} SET version = version + 1, ends = GREATEST(LEAST(ends, {clock} + longest_lease), {clock} + $3),
                 longest_lease = GREATEST(longest_lease, $3), counter_until = GREATEST(counter_until, ends + {COUNTER_TTLS} * $3)
             WHERE name = $1 AND owner = $2 AND ends > {clock}"
        )
        .into();
        let mut sorted: Vec<_> = holds.iter().collect();
        // Rows are always locked in the same order.
        sorted.sort_unstable_by_key(|hold| hold.name);
        let mut values = Vec::with_capacity(2 * holds.len());
        let mut held = Vec::with_capacity(holds.len());
        let mut asked = Vec::with_capacity(holds.len() + 3);
        for (at, hold) in sorted.into_iter().enumerate() {
            let named = [name(hold.name), hold.owner.to_string().into()];
            held.push(format!("(name = ${} AND owner = ${})", 2 * at + 1, 2 * at + 2));
            values.extend(named.clone());
            let [name, owner] = named;
            asked.push(Statement::kept(&text, [name, owner, hold.ttl.into()]));
        }
        // One commit for all of them.
        if holds.len() > 1 {
            asked.insert(0, Statement::bare("BEGIN"));
            asked.push(Statement::bare("COMMIT"));
        }
        let left = format!(
            "SELECT name, token, ends - {clock} FROM {table} FORCE INDEX (PRIMARY) WHERE ({}) AND ends > {clock}",
            held.join(" OR ")
        );
        asked.push(Statement::once(left, values));
        asked
    }

    fn sweep_cells(cells: &str) -> String {
        let clock = Self::CLOCK;
        format!("DELETE FROM {cells} WHERE forget_after <= {clock} ORDER BY forget_after LIMIT 64")
    }

    async fn listen(_: &Link<Self>) -> Result<()> {
        Ok(())
    }

    fn receive(link: &Link<Self>, locks: &[LockKey], rows: &[Row]) {
        link.receive(locks, rows);
    }

    fn notify(
        link: &Link<Self>,
        rows: &[Row],
        different: &[(&LockKey, &Record)],
        notices: &Outbox,
    ) -> (Vec<Option<Value>>, Vec<Statement>) {
        (link.store_notices(rows, different, notices), Vec::new())
    }

    async fn look_for_turns(link: &Link<Self>) {
        link.look_for_notices().await;
    }

    async fn own_table(connection: &mut Connection, own: &OwnTable<'_>) -> Result<Layout, Fault> {
        schema::layout(connection, own).await
    }

    fn foreign_columns(until: &str, since: &str, by: &str) -> String {
        let micros = |column: &str| format!("TIMESTAMPDIFF(MICROSECOND, {EPOCH}, {column})");
        let (until, since) = (micros(until), micros(since));
        format!("{until}, {since}, {by}, FALSE")
    }

    /// Text is compared with any.
    fn foreign_key(value: &str, _: &str) -> String {
        value.to_owned()
    }

    fn foreign_times(micros: &str) -> [String; 3] {
        let moment = format!("TIMESTAMPADD(MICROSECOND, {micros}, {EPOCH})");
        [moment, NEVER.to_owned(), "UTC_TIMESTAMP(3)".to_owned()]
    }

    /// Those libraries write UTC into columns that the server may keep in the time zone of a session: in theirs, which is the server's own.
    /// So that zone is set for statements on their tables. What fails is rolled back, and the time zone with it.
    fn around_foreign(mut statements: Vec<Statement>, _: bool) -> Vec<Statement> {
        statements.insert(0, Statement::bare("SET SESSION time_zone = @@global.time_zone"));
        statements.push(Statement::bare("SET SESSION time_zone = '+00:00'"));
        statements
    }
}
