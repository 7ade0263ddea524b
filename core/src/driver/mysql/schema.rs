//! The tables: fencelock's own, as they are made or printed, and how another shape is seen; a user's own, as the catalogue describes them, with
//! the statements for their versions; the trigger that refuses older tokens.

use std::collections::BTreeSet;

use md5::{Digest, Md5};

use super::connection::Connection;
use super::fault::{Number, OWN_TABLE, number};
use super::literal::text;
use crate::driver::identifier::{Table, check, quoted};
use crate::driver::own_table::{KeyedTable, OwnTable};
use crate::driver::sql::dialect::{Connection as _, Tables};
use crate::driver::sql::dialect::{Kind, Layout};
use crate::driver::sql::fault::Fault;
use crate::driver::sql::statement::{Row, Statement, column};
use crate::error::{Error, Result};

/// How many tokens the server draws at once.
const CACHE: &str = "CACHE 1000";

/// The server's clock in µs, in SQL. It is read where it stands: `NOW` is the moment a statement began, before it waited for a row.
pub(super) const CLOCK: &str = "TIMESTAMPDIFF(MICROSECOND, DATE'1970-01-01', SYSDATE(6))";

/// The most bytes of a name: the server takes 64 characters, of at most 4 bytes each.
pub(super) const MOST_BYTES: usize = 256;

/// The migration that makes fencelock's tables where they are not, as SQL for MySQL 8.0 and MariaDB 10.4, or newer. `table` is what the
/// option says: the name of the locks' table, with which the names of all others begin; `fencelock` unless the URL says otherwise.
///
/// Fails with `invalid` for what can be no such name.
///
/// ```
/// let schema = fencelock::driver::mysql::schema("fencelock")?;
/// assert!(schema.contains("CREATE TABLE IF NOT EXISTS `fencelock`"));
/// # Ok::<(), fencelock::Error>(())
/// ```
pub fn schema(table: &str) -> Result<String> {
    Ok(schema_of(&Tables::new(table, '`')?))
}

/// The longest name that stands in the trigger's.
const MOST_IN_TRIGGER: usize = 48;

/// Two statements that make a table refuse every update by a token older than the row's newest: a trigger on `column`, a `bigint` that
/// the update sets to its token. `table` is `table` or `database.table`. Whoever owns the table runs them once, one after the other; they can
/// be run again. In between, and if the second one fails, the table has no trigger.
///
/// With it, `UPDATE shelf SET stock = stock - 1, fence = ? WHERE item = ?` fails (SQLSTATE 45000, a message that begins with `lost:`) if a
/// newer holder has written the row since. Equal tokens pass. An update that leaves the column alone is not checked, and neither is a
/// `DELETE`: those need `... WHERE item = ? AND fence <= ?`.
///
/// Fails with the code `invalid` for what can be no name.
///
/// ```
/// let [_, create] = fencelock::driver::mysql::gate_trigger("shop.shelf", "fence")?;
/// assert!(create.contains("BEFORE UPDATE ON `shop`.`shelf`"));
/// assert!(fencelock::driver::mysql::gate_trigger("", "fence").is_err());
/// # Ok::<(), fencelock::Error>(())
/// ```
pub fn gate_trigger(table: &str, column: &str) -> Result<[String; 2]> {
    let table = Table::parse(table, MOST_BYTES)?;
    check("column", column, MOST_BYTES)?;
    let (place, name, column) = (table.place('`'), quoted('`', table.name), quoted('`', column));
    let trigger = match table.name {
        short if short.len() <= MOST_IN_TRIGGER => short.to_owned(),
        long => format!("{:032x}", u128::from_be_bytes(Md5::digest(long).into())),
    };
    let trigger = quoted('`', &format!("fencelock_gate_{trigger}"));
    Ok([
        format!("DROP TRIGGER IF EXISTS {place}{trigger}"),
        format!(
            "CREATE TRIGGER {place}{trigger} BEFORE UPDATE ON {place}{name} FOR EACH ROW
IF NEW.{column} < OLD.{column} OR (NEW.{column} IS NULL AND OLD.{column} IS NOT NULL) THEN
    SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'lost: a newer holder has written this row since; acquire the lock again';
END IF"
        ),
    ])
}

fn schema_of(tables: &Tables) -> String {
    let Tables { table, cells, rows, tokens, .. } = tables;
    format!(
        r"-- Locks of fencelock: one row each. A row stays when its lock is free, so that tokens rise.
CREATE TABLE IF NOT EXISTS {table} (
    name varbinary(544) NOT NULL PRIMARY KEY,       -- its bytes, also of a job's lock: no two names are alike
    version bigint NOT NULL DEFAULT 0,              -- counts the changes of the row
    kind varchar(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL DEFAULT 'mutex', -- mutex, read-write, semaphore
    holder mediumtext,                              -- who holds it, as JSON; of several, the first
    token bigint,                                   -- the fencing token of the newest grant to a present holder
    expires_at datetime(6) AS (TIMESTAMPADD(MICROSECOND, ends, TIMESTAMP'1970-01-01 00:00:00')) VIRTUAL, -- in UTC
    waiting int NOT NULL DEFAULT 0,                 -- how many wait
    owner char(32) CHARACTER SET ascii COLLATE ascii_bin, -- proves the hold of a mutex
    ends bigint,                                    -- when the last lease ends, in microseconds since 1970, as all below
    granted_at bigint,
    last_token bigint NOT NULL DEFAULT 0,
    counter_until bigint NOT NULL DEFAULT 0,        -- from then on `last_token` may be forgotten
    longest_lease bigint NOT NULL DEFAULT 0,
    rest mediumtext,                                -- waiters, other holders and the like, as JSON
    notices mediumtext                              -- what their clients read at their next look, as JSON
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
-- Versions and scheduled jobs.
CREATE TABLE IF NOT EXISTS {cells} (
    name varbinary(600) NOT NULL PRIMARY KEY,
    value mediumtext,
    since bigint NOT NULL DEFAULT 0,
    trail mediumtext,                               -- its newest changes, as JSON
    forget_after bigint,
    KEY {cells}_end (forget_after)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
-- Locks by row: a row is a lock while somebody has it locked. It tells nothing else, so an old one may go.
CREATE TABLE IF NOT EXISTS {rows} (
    name varbinary(544) NOT NULL PRIMARY KEY,
    made datetime(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6) -- in UTC
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
-- Fencing tokens of locks that live with a session, on MariaDB. MySQL has no sequences; there they come from the server's clock.
-- On a Galera cluster write NOCACHE for {CACHE}.
/*M! CREATE SEQUENCE IF NOT EXISTS {tokens} INCREMENT BY 32 MINVALUE 32 MAXVALUE 9007199254740960 {CACHE} NOCYCLE ENGINE=InnoDB */
/*!80000 DO 0 */;
"
    )
}

/// Makes the tables and the sequence.
pub(super) async fn create(connection: &mut Connection, tables: &Tables) -> Result<(), Fault> {
    let mut made = connection.ask(&[Statement::bare(schema_of(tables))], false).await;
    // A Galera cluster has no such sequence with a cache.
    if made.as_ref().is_err_and(|fault| number(&fault.failure.error) == "1235") {
        let schema = schema_of(tables).replace(CACHE, "NOCACHE");
        made = connection.ask(&[Statement::bare(schema)], false).await;
    }
    made.map(drop)
}

/// The required shape of the tables: the end of the table's name, columns, their types, and which column is the key.
const SHAPE: &[(&str, &str, &str, &str)] = &[
    ("", "name", "varbinary", "PRI"),
    ("", "version", "bigint", ""),
    ("", "kind", "varchar", ""),
    ("", "holder", "mediumtext", ""),
    ("", "token", "bigint", ""),
    ("", "waiting", "int", ""),
    ("", "owner", "char", ""),
    ("", "ends", "bigint", ""),
    ("", "granted_at", "bigint", ""),
    ("", "last_token", "bigint", ""),
    ("", "counter_until", "bigint", ""),
    ("", "longest_lease", "bigint", ""),
    ("", "rest", "mediumtext", ""),
    ("", "notices", "mediumtext", ""),
    ("_cell", "name", "varbinary", "PRI"),
    ("_cell", "value", "mediumtext", ""),
    ("_cell", "since", "bigint", ""),
    ("_cell", "trail", "mediumtext", ""),
    ("_cell", "forget_after", "bigint", "MUL"),
];

/// The same, as it is.
fn shown(tables: &Tables) -> String {
    let Tables { word, cells, .. } = tables;
    format!(
        "SELECT SUBSTRING(c.TABLE_NAME, {}), c.COLUMN_NAME, c.DATA_TYPE, c.COLUMN_KEY FROM information_schema.COLUMNS AS c
         JOIN information_schema.TABLES AS t ON t.TABLE_SCHEMA = c.TABLE_SCHEMA AND t.TABLE_NAME = c.TABLE_NAME AND t.ENGINE = 'InnoDB'
         WHERE c.TABLE_SCHEMA = DATABASE() AND c.TABLE_NAME IN ('{word}', '{cells}')",
        word.len() + 1
    )
}

/// Makes sure that the tables are there, and makes them if `create` says so. Answers a column that is not as the statements write it.
pub(super) async fn find(
    connection: &mut Connection,
    tables: &Tables,
    create: bool,
) -> Result<Option<(String, &'static str)>, Fault> {
    let look = |table: &str| Statement::bare(format!("SELECT name FROM {table} LIMIT 0"));
    let found = connection.ask(&[look(&tables.table), look(&tables.cells)], false).await;
    match found {
        Err(fault) if create && number(&fault.failure.error) == "1146" => {
            // Nothing is made beside a table that is somebody else's.
            let other = differs(connection, tables, true).await?;
            if other.is_some() {
                return Ok(other);
            }
            self::create(connection, tables).await?;
        }
        found => drop(found?),
    }
    differs(connection, tables, false).await
}

/// A column that is not of that shape. With `may_lack` a table may not be there at all.
async fn differs(
    connection: &mut Connection,
    tables: &Tables,
    may_lack: bool,
) -> Result<Option<(String, &'static str)>, Fault> {
    let answer = connection.ask(&[Statement::bare(shown(tables))], false).await?;
    let shown = |row: &Row| {
        let text = |at| column::<&str>(row, at, "COLUMN_NAME").map(str::to_owned);
        Ok((text(0)?, text(1)?, text(2)?, text(3)?))
    };
    let shown: Result<Vec<(String, String, String, String)>> = answer.all().map(shown).collect();
    let shown = shown.map_err(Fault::refused)?;
    let shown: BTreeSet<(&str, &str, &str, &str)> =
        shown.iter().map(|(a, b, c, d)| (&**a, &**b, &**c, &**d)).collect();
    let there: BTreeSet<_> = shown.iter().map(|(table, ..)| *table).collect();
    let fits = |column: &(&str, &str, &str, &str)| {
        shown.contains(column) || may_lack && !there.contains(column.0)
    };
    let other = SHAPE.iter().find(|column| !fits(column));
    Ok(other.map(|(table, name, kind, _)| (format!("{}{table}.{name}", tables.word), *kind)))
}

const WHOLE: &[&str] = &["tinyint", "smallint", "mediumint", "int", "bigint"];
const NUMERIC: &[&str] = &["decimal", "float", "double", "year"];
/// The types of columns whose values cannot be converted to text.
const BYTES: &[&str] =
    &["bit", "binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob", "geometry"];

/// A column of a user's own table, as the catalogue describes it.
#[derive(Clone)]
pub(super) struct OwnColumn {
    name: String,
    pub(super) kind: String,
    /// It is a key by itself.
    pub(super) is_unique: bool,
    pub(super) is_json: bool,
    /// Its table locks rows for a transaction.
    has_transactions: bool,
}

impl OwnColumn {
    fn of(row: &Row) -> Result<Self> {
        Ok(Self {
            name: column::<&str>(row, 0, "name")?.to_owned(),
            kind: column::<&str>(row, 1, "type")?.to_owned(),
            is_unique: column::<i64>(row, 2, "unique")? != 0,
            is_json: column::<i64>(row, 3, "json")? != 0,
            has_transactions: column::<i64>(row, 4, "engine")? != 0,
        })
    }
}

/// These columns of a table. Refused if it or one of them is missing.
pub(super) async fn columns(
    connection: &mut Connection,
    table: &KeyedTable<'_>,
    names: &[&str],
    known: &'static [Number],
) -> Result<Vec<OwnColumn>, Fault> {
    let rows = connection.ask_of(&[Statement::bare(shape(table))], false, known).await?.rows();
    if rows.is_empty() {
        return Err(Fault::refused(table.no_table()));
    }
    let shown: Result<Vec<OwnColumn>> = rows.iter().map(OwnColumn::of).collect();
    let shown = shown.map_err(Fault::refused)?;
    if shown.iter().any(|column| !column.has_transactions) {
        return Err(Fault::refused(table.no_transactions()));
    }
    let found = names.iter().map(|name| {
        let found = shown.iter().find(|column| column.name.eq_ignore_ascii_case(name));
        found.cloned().ok_or_else(|| Fault::refused(table.no_column(name)))
    });
    found.collect()
}

/// The statements for the versions in a table.
pub(super) async fn layout(
    connection: &mut Connection,
    own: &OwnTable<'_>,
) -> Result<Layout, Fault> {
    let names = [own.keyed.key, own.version, own.value];
    let found = columns(connection, &own.keyed, &names, OWN_TABLE).await?;
    let [key, version, value] = &found[..] else { return Err(Fault::vanished()) };
    if !WHOLE.contains(&&*version.kind) {
        return Err(Fault::refused(own.does_not_count(&version.kind)));
    }
    if !key.is_unique {
        return Err(Fault::refused(own.keyed.not_unique()));
    }
    let kind = match &*value.kind {
        _ if value.is_json => Kind::Document,
        kind if WHOLE.contains(&kind) || NUMERIC.contains(&kind) => Kind::Number,
        kind if BYTES.contains(&kind) => {
            let message = format!("a column of the type {kind} holds no value that JSON knows");
            return Err(Fault::refused(Error::invalid("on_table", message)));
        }
        _ => Kind::Text,
    };
    let ([key, version, value], table, clock) = (own.columns('`'), own.keyed.name('`'), CLOCK);
    let is_it = is_it(&key, "$1");
    Ok(Layout {
        look: vec![
            format!("SELECT TRUE, {version}, {value} FROM {table} WHERE {is_it}"),
            format!("SELECT {clock}"),
        ],
        lock: format!("SELECT {version}, {clock} FROM {table} WHERE {is_it} FOR UPDATE"),
        replace: format!(
            "UPDATE {table} SET {version} = {version} + 1, {value} = $2 WHERE {is_it}"
        ),
        kind,
    })
}

/// The SQL condition that a row has this name, which is SQL too, as its key. Text that only begins with a number is no number.
pub(super) fn is_it(key: &str, name: &str) -> String {
    format!("{key} = {name} AND CAST({key} AS CHAR) = {name}")
}

/// The columns of a table: names, types, whether each is a key by itself, whether it holds JSON, whether its table has transactions.
fn shape(table: &KeyedTable<'_>) -> String {
    let schema = table.table.schema.map_or("DATABASE()".to_owned(), text);
    let table = text(table.table.name);
    // Each kind of server reads one of the comments.
    format!(
        "SELECT c.COLUMN_NAME, c.DATA_TYPE, EXISTS (SELECT 1 FROM information_schema.STATISTICS AS s
             WHERE s.TABLE_SCHEMA = c.TABLE_SCHEMA AND s.TABLE_NAME = c.TABLE_NAME AND s.NON_UNIQUE = 0 AND s.SEQ_IN_INDEX = 1
                 AND s.COLUMN_NAME = c.COLUMN_NAME AND s.SUB_PART IS NULL AND NOT EXISTS (SELECT 1 FROM information_schema.STATISTICS AS o
                     WHERE o.TABLE_SCHEMA = s.TABLE_SCHEMA AND o.TABLE_NAME = s.TABLE_NAME AND o.INDEX_NAME = s.INDEX_NAME
                         AND o.SEQ_IN_INDEX = 2)),
             c.DATA_TYPE = 'json' /*M! OR EXISTS (SELECT 1 FROM information_schema.CHECK_CONSTRAINTS AS k
                 WHERE k.CONSTRAINT_SCHEMA = c.TABLE_SCHEMA AND k.TABLE_NAME = c.TABLE_NAME
                     AND k.CHECK_CLAUSE = CONCAT('json_valid(`', c.COLUMN_NAME, '`)')) */,
             NOT EXISTS (SELECT 1 FROM information_schema.TABLES AS t JOIN information_schema.ENGINES AS e ON e.ENGINE = t.ENGINE
                 WHERE t.TABLE_SCHEMA = c.TABLE_SCHEMA AND t.TABLE_NAME = c.TABLE_NAME AND e.TRANSACTIONS <> 'YES')
         FROM information_schema.COLUMNS AS c WHERE c.TABLE_SCHEMA = {schema} AND c.TABLE_NAME = {table}"
    )
}
