//! The tables, as they are made or printed, and how another shape is seen.

use std::collections::BTreeSet;

use super::connection::Connection;
use super::fault::number;
use crate::driver::sql::dialect::Connection as _;
use crate::driver::sql::fault::Fault;
use crate::driver::sql::statement::{Row, Statement, column};
use crate::driver::sql::tables::Tables;
use crate::error;

/// How many tokens the server draws at once.
const CACHE: &str = "CACHE 1000";

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
pub fn schema(table: &str) -> error::Result<String> {
    Ok(schema_of(&Tables::new(table, '`')?))
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
    told mediumtext                                 -- what their clients read when they are woken, as JSON
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
    ("", "told", "mediumtext", ""),
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

/// A column, and the type that it should have.
type Column = (String, &'static str);

/// Makes sure that the tables are there, and makes them if `create` says so. Answers a column that is not as the statements write it.
pub(super) async fn find(
    connection: &mut Connection,
    tables: &Tables,
    create: bool,
) -> Result<Option<Column>, Fault> {
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
) -> Result<Option<Column>, Fault> {
    let answer = connection.ask(&[Statement::bare(shown(tables))], false).await?;
    let shown = |row: &Row| {
        let text = |at| column::<&str>(row, at, "COLUMN_NAME").map(str::to_owned);
        Ok((text(0)?, text(1)?, text(2)?, text(3)?))
    };
    let shown: error::Result<Vec<(String, String, String, String)>> =
        answer.all().map(shown).collect();
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
