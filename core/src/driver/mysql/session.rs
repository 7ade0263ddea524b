//! Locks that live with a session of a MySQL or MariaDB server: named locks (`GET_LOCK`), and rows. A session gets a name again that it has,
//! so it is asked for each name once.
//!
//! The server ends a session that was silent (`wait_timeout`). Which rows are locked, these servers tell administrators only; so whoever has
//! one takes a named lock too, its mark, by which others see who it is. Nothing else rests on that.

use std::sync::Arc;
use std::time::Duration;

use super::connection::{Connection, Version};
use super::dialect::{Mysql, check_durability};
use super::fault::{Number, number, pooled};
use super::guarantees;
use super::line::Line;
use super::literal::{text, written};
use super::schema::{self, columns, is_it};
use crate::driver::identifier::quoted;
use crate::driver::own_table::{KeyedTable, UNFIT};
use crate::driver::sql::dialect::Tables;
use crate::driver::sql::dialect::{AddressOf, Connection as _, Dialect};
use crate::driver::sql::fault::{Fault, Next, bad_column};
use crate::driver::sql::host::Host;
use crate::driver::sql::known::CHANGED;
use crate::driver::sql::pool::when_there_is_room;
use crate::driver::sql::session::{Named, Place, Rows, SessionDialect, SessionLocks, Way};
use crate::driver::sql::statement::{Answer, Row, Statement, Value, column, name};
use crate::error::{Code, Error, Result};
use crate::options::Options;
use crate::port::{
    EndSink, Guarantee, HolderView, LockKey, LockState, Mode, RuntimeHandle, WaiterView,
};

/// One client's view of the named locks (`GET_LOCK`) of a MySQL or MariaDB server. [`Sessions`](crate::Sessions) makes a store of locks of it.
pub type GetLockStore = SessionLocks<Mysql, Named<Mysql>>;
/// The same of the rows of a table, which are locks while they are locked.
pub type RowStore = SessionLocks<Mysql, Rows<Mysql>>;

/// How long a wait for a name may take, in seconds: a year.
const LONG: u32 = 31_536_000;
/// How long the server waits for a row, in seconds. A longer statement would hold up whoever wants the whole server read-only, as a
/// backup does.
const WAIT: u32 = 1;

/// The server's errors on the objects that the migration makes.
const NUMBERS: &[Number] = &[
    (
        &[1146, 4091],
        Code::Unsupported,
        Next::Keep,
        "the database lacks what locks of a session need; connect once with `create=true`, or have its owner run what `fencelock sql schema --dialect mysql` prints, with the `--table` of the URL",
    ),
    (
        &[1142, 1143, 1370],
        Code::Auth,
        Next::Keep,
        "the user may not do this; grant it SELECT and INSERT on `fencelock_token`, and for locks by row SELECT, INSERT, UPDATE and DELETE on `fencelock_row` (or what begins with `table`)",
    ),
];

/// The server's errors on a user's own table.
const OWN: &[Number] = &[
    (
        &[1142, 1143],
        Code::Auth,
        Next::Keep,
        "the user may not do this; grant it SELECT and UPDATE on your table, SELECT and INSERT on the sequence `fencelock_token` (or what begins with `table`)",
    ),
    (&[1054, 1146, 1356], Code::Conflict, Next::Keep, CHANGED),
    (&[1267, 1271, 1292, 1366, 1367, 1525], Code::Invalid, Next::Keep, UNFIT),
];

/// A session's first statement: it sets when the server ends it; no statement limit ends a wait. The server counts whole seconds.
/// Each kind of server reads one of the comments.
fn setup(ttl: Duration) -> String {
    let silent = whole_seconds(ttl);
    format!(
        "SET SESSION wait_timeout = {silent}, net_read_timeout = {silent}, net_write_timeout = {silent}
             /*M! , max_statement_time = 0, idle_transaction_timeout = 0, idle_readonly_transaction_timeout = 0, idle_write_transaction_timeout = 0 */
             /*!80000 , max_execution_time = 0 */"
    )
}

/// The next whole second.
fn whole_seconds(ttl: Duration) -> u64 {
    ttl.as_secs() + u64::from(ttl.subsec_nanos() > 0)
}

impl SessionDialect for Mysql {
    type Wire = Arc<Line>;
    type Watch = ();

    const BEAT: &'static str = "SELECT CONNECTION_ID()";
    const WAITS_SHORTLY: bool = false;
    const BEGIN_ROW: &'static str = "BEGIN";
    const GUARANTEES: [&'static [Guarantee]; 2] = [guarantees::NAMED, guarantees::ROWS];
    const FREE_ALL: &'static str = "SELECT CONNECTION_ID(), RELEASE_ALL_LOCKS()";

    fn check(options: &Options) -> Result<()> {
        check_durability(options)
    }

    fn refusal(mode: Mode, rows: bool) -> Option<&'static str> {
        Some(match mode {
            Mode::Exclusive => return None,
            Mode::Permit if rows => "a row is locked once; for permits use `mysql://`",
            Mode::Permit => "named locks of MySQL do not count; for permits use `mysql://`",
            Mode::Read | Mode::Write if rows => {
                "rows that readers share let new readers pass a writer that waits; for readers and writers use `mysql://`"
            }
            Mode::Read | Mode::Write => {
                "named locks of MySQL have no readers; for readers and writers use `mysql://`"
            }
        })
    }

    fn known(on_own_table: bool) -> &'static [Number] {
        if on_own_table { OWN } else { NUMBERS }
    }

    async fn open<W: Way<Self>>(
        store: &SessionLocks<Self, W>,
        ttl: Duration,
        _: &EndSink,
    ) -> Result<(Connection, Host, ())> {
        let (runtime, limit) = (&store.runtime, store.connect_timeout);
        let open = || Connection::open_first(&store.address, runtime, limit);
        let (mut connection, host) = when_there_is_room(runtime, limit, open).await?;
        let set = connection.ask(&[Statement::bare(setup(ttl))], false).await;
        set.map(|_| (connection, host, ())).map_err(|fault| fault.failure.error)
    }

    fn wire(
        connection: Connection,
        number: i64,
        (address, host): (Arc<AddressOf<Self>>, Host),
        (): (),
        known: &'static [Number],
        runtime: RuntimeHandle,
        ended: EndSink,
    ) -> Arc<Line> {
        Line::new(connection, number, (address, host), known, runtime, ended)
    }

    async fn create(connection: &mut Connection, tables: &Tables) -> Result<(), Fault> {
        schema::create(connection, tables).await
    }

    fn missing(error: &Error) -> Option<Error> {
        matches!(number(error), "1146" | "4091").then(|| error.clone())
    }

    fn pooled() -> Error {
        pooled()
    }

    fn was_interrupted(error: &Error) -> bool {
        number(error) == "1317"
    }

    fn was_too_short(error: &Error) -> bool {
        number(error) == "1205"
    }

    fn token(connection: &Connection, tables: &Tables) -> String {
        Tokens::of(connection.version, tables).next()
    }

    async fn advance(connection: &mut Connection, tables: &Tables, _: bool) -> Result<(), Fault> {
        Tokens::of(connection.version, tables).advance(connection).await
    }

    async fn prepare(
        connection: &mut Connection,
        _: &[Arc<str>],
        rows: Option<&Place>,
        known: &'static [Number],
    ) -> Result<(), Fault> {
        let Some(Place { table, .. }) = rows else { return Ok(()) };
        if !connection.version.skips_locked() {
            let message = "the server is too old for locks by row: MySQL 8.0 or MariaDB 10.6, or a newer one, is needed";
            return Err(Fault::refused(Error::new(Code::Unsupported, message)));
        }
        let wait = format!("SET SESSION innodb_lock_wait_timeout = {WAIT}");
        let look = format!("SELECT 1 FROM {table} LIMIT 0");
        let asked = [Statement::bare(wait), Statement::bare(look)];
        connection.ask_of(&asked, false, known).await.map(drop)
    }

    /// A wait opens no table, and others see in its text who waits for what.
    fn named(tables: &Tables, token: &str, _: bool) -> [String; 3] {
        let key = key(tables, "$1");
        [
            format!(
                "SELECT CONNECTION_ID(), CASE GET_LOCK({key}, 0) WHEN 1 THEN {token} WHEN 0 THEN 0 END"
            ),
            format!("SELECT CONNECTION_ID(), GET_LOCK({key}, {LONG})"),
            format!("SELECT CONNECTION_ID(), RELEASE_LOCK({key})"),
        ]
    }

    fn look_named(tables: &Tables, wait: &str, lock: &LockKey) -> Vec<Statement> {
        let value = name(lock.as_str());
        let holder = format!("IS_USED_LOCK({})", key(tables, "$1"));
        look(&holder, wait, value)
    }

    async fn place(
        connection: &mut Connection,
        tables: &Tables,
        own: Option<&KeyedTable<'_>>,
        known: &'static [Number],
    ) -> Result<Place, Fault> {
        let Some(own) = own else {
            let table = tables.rows.clone();
            let mark = mark(None, &format!("'{table}'"), "t.name");
            return Ok(Place { table, is_it: "t.name = $1".to_owned(), mark, no_row: None });
        };
        let found = columns(connection, own, &[own.key], known).await?;
        if found.iter().any(|key| !key.is_unique) {
            return Err(Fault::refused(own.not_unique()));
        }
        let key = format!("t.{}", quoted('`', own.key));
        let schema = own.table.schema.map(text);
        let value = format!("CAST({key} AS CHAR)");
        let mark = mark(schema.as_deref(), &text(own.table.name), &value);
        let no_row = Some(own.no_row());
        Ok(Place { table: own.name('`'), is_it: is_it(&key, "$1"), mark, no_row })
    }

    /// The new holder of the row takes its mark. The former one has given it back, or is being ended: so the wait for it is no longer
    /// than a second.
    fn lock_row(Place { table, is_it, mark, .. }: &Place, _: &Tables, token: &str) -> [String; 2] {
        let wait = format!(
            "SELECT CONNECTION_ID(), {token}, GET_LOCK({mark}, 1) FROM {table} AS t WHERE {is_it} FOR UPDATE"
        );
        [format!("{wait} SKIP LOCKED"), wait]
    }

    /// The mark goes before the row: whoever gets the row takes it.
    fn roll_back() -> Vec<Statement> {
        vec![Statement::bare(Self::FREE_ALL), Statement::bare("ROLLBACK")]
    }

    fn look_row(
        Place { table, is_it, mark, .. }: &Place,
        wait: &str,
        name: Value,
    ) -> Vec<Statement> {
        let holder = format!("(SELECT IS_USED_LOCK({mark}) FROM {table} AS t WHERE {is_it})");
        look(&holder, wait, name)
    }

    fn locked_names(Place { table, mark, .. }: &Place) -> String {
        format!(
            "SELECT t.name FROM {table} AS t WHERE t.name >= $1 AND LEFT(t.name, LENGTH($1)) = $1
             AND IS_USED_LOCK({mark}) IS NOT NULL ORDER BY t.name"
        )
    }

    fn is_old(seconds: u64) -> String {
        format!("made < SYSDATE(6) - INTERVAL {seconds} SECOND")
    }

    /// As far as this user may see connections. The server knows neither tokens nor what a client says of itself.
    fn state(answer: &Answer) -> Result<LockState> {
        let mut state = LockState::default();
        let mut rows = answer.all();
        let holder = match rows.next() {
            Some(row) => column::<Option<u64>>(row, 0, "IS_USED_LOCK")?,
            None => None,
        };
        let mode = Mode::Exclusive;
        let mut shown = None;
        for row in rows {
            let connection = column::<u64>(row, 0, "ID")?;
            let (user, host) = (column::<&str>(row, 1, "USER")?, column::<&str>(row, 2, "HOST")?);
            let info = serde_json::json!({ "user": user, "host": host, "connection": connection });
            let info: Arc<str> = info.to_string().into();
            if Some(connection) == holder {
                shown = Some(info);
                continue;
            }
            let waited = column::<Option<f64>>(row, 3, "TIME")?.unwrap_or_default();
            let waiting_for = Duration::try_from_secs_f64(waited / 1000.0).unwrap_or_default();
            state.waiters.push(WaiterView { mode, info, waiting_for });
        }
        if let Some(connection) = holder {
            // Other users' connections are not shown to everybody.
            let hidden = || serde_json::json!({ "connection": connection }).to_string().into();
            let info = shown.unwrap_or_else(hidden);
            let (token, left, held_for, owner) = (None, None, None, None);
            state.holders.push(HolderView { mode, token, left, held_for, info, owner });
        }
        Ok(state)
    }
}

/// The holder and waiters of a lock. `holder` is SQL for the holder's connection number, `wait` the statement of those that wait.
fn look(holder: &str, wait: &str, value: Value) -> Vec<Statement> {
    let wait = written(&Statement::once(wait, [value.clone()]));
    // MariaDB also tells thousandths of a second.
    let shown = format!(
        "SELECT ID, USER, HOST, TIME * 1000 /*M! * 0 + ROUND(TIME_MS) */ FROM information_schema.PROCESSLIST
         WHERE ID = {holder} OR (COMMAND = 'Query' AND DB = DATABASE() AND LEFT(INFO, {}) = {})
         ORDER BY /*M! TIME_MS DESC, */ TIME DESC, ID",
        wait.chars().count(),
        text(&wait)
    );
    let holder = Statement::once(format!("SELECT {holder}"), [value.clone()]);
    vec![holder, Statement::once(shown, [value])]
}

/// The server's name of a lock. It takes 64 characters at most, does not tell upper from lower case and has one set of names for all databases,
/// so it is a hash of the database and the lock's name; tables of another name have other locks. `name` is SQL, as is what comes of it.
fn key(tables: &Tables, name: &str) -> String {
    let word = format!("'{}'", tables.word);
    match &*tables.word {
        "fencelock" => hashed("fencelock:", &["DATABASE()", name]),
        _ => hashed("fencelock:", &["DATABASE()", &word, name]),
    }
}

/// The name that whoever has a row locked has taken too, so that others see who has it. All of that is SQL; without a schema it is
/// the connection's.
fn mark(schema: Option<&str>, table: &str, value: &str) -> String {
    hashed("fencelock-row:", &[schema.unwrap_or("DATABASE()"), table, value])
}

fn hashed(prefix: &str, parts: &[&str]) -> String {
    let bytes: Vec<_> = parts.iter().map(|part| format!("CAST({part} AS BINARY)")).collect();
    format!("CONCAT('{prefix}', LEFT(SHA2(CONCAT({}), 256), 48))", bytes.join(", 0x00, "))
}

/// A second, in microseconds as tokens are.
const SECOND: u64 = 1_000_000;

/// How far ahead of the clock a sequence is set.
const LEAD: u64 = 120 * SECOND;

/// The source of fencing tokens.
///
/// MariaDB has sequences. A rollback gives no token back. A crash may lose some that were drawn in the milliseconds before it, so a sequence
/// is set two minutes ahead of the clock, if it is behind it or not so far ahead of the moment the server started.
///
/// On MySQL a token is the server's clock, read after the grant. The next holder reads it later.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Tokens {
    /// The sequence of this name.
    Sequence(String),
    Clock,
}

impl Tokens {
    fn of(version: Version, tables: &Tables) -> Self {
        if version.is_mariadb { Self::Sequence(tables.tokens.clone()) } else { Self::Clock }
    }

    /// A new one, in SQL.
    fn next(&self) -> String {
        match self {
            Self::Sequence(name) => format!("NEXTVAL({name})"),
            Self::Clock => Mysql::CLOCK.to_owned(),
        }
    }

    /// Makes sure that tokens rise, before a session locks.
    async fn advance(&self, connection: &mut Connection) -> Result<(), Fault> {
        let (Self::Sequence(name), clock) = (self, Mysql::CLOCK) else { return Ok(()) };
        let asked = format!(
            "SELECT CAST(next_not_cached_value AS SIGNED) - CAST(cache_size * increment AS SIGNED), {clock}, (SELECT CAST(VARIABLE_VALUE AS UNSIGNED)
                 FROM information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME = 'UPTIME') FROM {name}"
        );
        let answer = connection.ask_of(&[Statement::bare(asked)], false, NUMBERS).await?;
        let read = answer.row().ok_or_else(|| bad_column("token")).and_then(ahead);
        if let Some(ahead) = read.map_err(Fault::refused)? {
            // It takes a number and no expression, and none that is less than the last.
            let set = format!("DO SETVAL({name}, {ahead})");
            connection.ask_of(&[Statement::bare(set)], false, NUMBERS).await?;
        }
        Ok(())
    }
}

/// To what the sequence is to be set, if it is behind. That is more than was drawn before this moment: nothing was ever set further
/// ahead, and fewer than 31,250 are drawn in a second, each 32 more than the last. So tokens rise over a restart, also if the database was
/// restored meanwhile. A backup that is loaded while the server runs is not noticed: see docs/reference/session-guarantees.md.
fn ahead(row: &Row) -> Result<Option<u64>> {
    let next = column::<i64>(row, 0, "next_not_cached_value")?;
    let (now, uptime) = (column::<u64>(row, 1, "now")?, column::<u64>(row, 2, "uptime")?);
    // The uptime is counted in whole seconds, so the server may have started a second later than it says.
    let started = now.saturating_sub(uptime.saturating_mul(SECOND)) + SECOND;
    let least = now.max(started + LEAD);
    let is_behind = u64::try_from(next).is_ok_and(|next| next < least) || next < 0;
    Ok(is_behind.then_some(now + LEAD))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_server_waits_no_shorter_than_the_guard_counts() {
        for (millis, seconds) in [(1, 1), (600, 1), (1000, 1), (1001, 2), (10_000, 10)] {
            assert_eq!(whole_seconds(Duration::from_millis(millis)), seconds);
        }
    }

    #[test]
    fn the_rule_is_the_published_one() {
        let rule = "CONCAT('fencelock:', LEFT(SHA2(CONCAT(CAST(DATABASE() AS BINARY), 0x00, CAST('orders:42' AS BINARY)), 256), 48))";
        let tables = |word| Tables::new(word, '`').unwrap();
        assert_eq!(key(&tables("fencelock"), "'orders:42'"), rule);
        let other = rule.replace("0x00, ", "0x00, CAST('app' AS BINARY), 0x00, ");
        assert_eq!(key(&tables("app"), "'orders:42'"), other);
        let row = mark(Some("'a'"), "'b'", "t.id");
        assert!(row.contains("CAST('a' AS BINARY), 0x00, CAST('b' AS BINARY), 0x00, CAST(t.id"));
    }
}
