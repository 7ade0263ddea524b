//! The tables, as they are made or printed, and how another shape is seen.

use std::collections::BTreeSet;

use mysql_async::Conn;
use mysql_async::prelude::Queryable;

/// What the 64 characters of a name that the server takes have at most.
pub(super) const MOST_BYTES: usize = 256;

const SCHEMA: &str = r"-- Locks of fencelock: one row each. A row stays when its lock is free, so that tokens rise.
CREATE TABLE IF NOT EXISTS fencelock (
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
CREATE TABLE IF NOT EXISTS fencelock_cell (
    name varbinary(600) NOT NULL PRIMARY KEY,
    value mediumtext,
    since bigint NOT NULL DEFAULT 0,
    trail mediumtext,                               -- its newest changes, as JSON
    forget_after bigint,
    KEY fencelock_cell_end (forget_after)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
-- Locks by row: a row is a lock while somebody has it locked. It tells nothing else, so an old one may go.
CREATE TABLE IF NOT EXISTS fencelock_row (
    name varbinary(544) NOT NULL PRIMARY KEY,
    made datetime(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6) -- in UTC
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
-- Fencing tokens of locks that live with a session, on MariaDB. MySQL has no sequences; there they come from the server's clock.
/*M! CREATE SEQUENCE IF NOT EXISTS fencelock_token INCREMENT BY 32 MINVALUE 32 MAXVALUE 9007199254740960 CACHE 1000 NOCYCLE ENGINE=InnoDB */
/*!80000 DO 0 */;
";

/// The migration that makes fencelock's tables where they are not, as SQL for MySQL 8.0 and MariaDB 10.4, or newer.
///
/// ```
/// assert!(fencelock::driver::mysql::schema().contains("CREATE TABLE IF NOT EXISTS fencelock"));
/// ```
pub fn schema() -> &'static str {
    SCHEMA
}

/// Makes the tables and the sequence.
pub(super) async fn create(conn: &mut Conn) -> Result<(), mysql_async::Error> {
    conn.query_drop(SCHEMA).await
}

/// What the tables have to be: columns, their types, and which is the key.
const SHAPE: &[(&str, &str, &str, &str)] = &[
    ("fencelock", "name", "varbinary", "PRI"),
    ("fencelock", "version", "bigint", ""),
    ("fencelock", "kind", "varchar", ""),
    ("fencelock", "holder", "mediumtext", ""),
    ("fencelock", "token", "bigint", ""),
    ("fencelock", "waiting", "int", ""),
    ("fencelock", "owner", "char", ""),
    ("fencelock", "ends", "bigint", ""),
    ("fencelock", "granted_at", "bigint", ""),
    ("fencelock", "last_token", "bigint", ""),
    ("fencelock", "counter_until", "bigint", ""),
    ("fencelock", "longest_lease", "bigint", ""),
    ("fencelock", "rest", "mediumtext", ""),
    ("fencelock", "told", "mediumtext", ""),
    ("fencelock_cell", "name", "varbinary", "PRI"),
    ("fencelock_cell", "value", "mediumtext", ""),
    ("fencelock_cell", "since", "bigint", ""),
    ("fencelock_cell", "trail", "mediumtext", ""),
    ("fencelock_cell", "forget_after", "bigint", "MUL"),
];

const SHOWN: &str = "SELECT c.TABLE_NAME, c.COLUMN_NAME, c.DATA_TYPE, c.COLUMN_KEY FROM information_schema.COLUMNS AS c
    JOIN information_schema.TABLES AS t ON t.TABLE_SCHEMA = c.TABLE_SCHEMA AND t.TABLE_NAME = c.TABLE_NAME AND t.ENGINE = 'InnoDB'
    WHERE c.TABLE_SCHEMA = DATABASE() AND c.TABLE_NAME IN ('fencelock', 'fencelock_cell')";

/// Makes sure that the tables are there, and makes them if `create` says so; whether they are of the shape that the statements write.
pub(super) async fn find(conn: &mut Conn, create: bool) -> Result<bool, mysql_async::Error> {
    const EACH: &str =
        "SELECT name FROM fencelock LIMIT 0; SELECT name FROM fencelock_cell LIMIT 0";
    match conn.query_drop(EACH).await {
        Err(mysql_async::Error::Server(said)) if create && said.code == 1146 => {
            self::create(conn).await?;
        }
        found => found?,
    }
    let shown: Vec<(String, String, String, String)> = conn.query(SHOWN).await?;
    let shown: BTreeSet<(&str, &str, &str, &str)> =
        shown.iter().map(|(a, b, c, d)| (&**a, &**b, &**c, &**d)).collect();
    Ok(SHAPE.iter().all(|column| shown.contains(column)))
}
