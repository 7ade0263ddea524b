//! The tables, as they are made or printed, and how another shape is seen.

use tokio_postgres::types::Type;
use tokio_postgres::{Client, Statement};

use super::fault::other_shape;
use crate::error::Result;

const SCHEMA: &str = r#"-- Locks of fencelock: one row each. A row stays when its lock is free, so that tokens rise.
CREATE TABLE IF NOT EXISTS fencelock (
    name text COLLATE "C" PRIMARY KEY,
    version bigint NOT NULL DEFAULT 0,        -- counts the changes of the row
    kind text NOT NULL DEFAULT 'mutex',       -- mutex, read-write, semaphore
    holder text,                              -- who holds it, as JSON; of several, the first
    token bigint,                             -- the fencing token of the newest grant to a present holder
    expires_at timestamptz,                   -- when the last lease ends, unless it is renewed
    waiting integer NOT NULL DEFAULT 0,       -- how many wait
    owner text,                               -- proves the hold of a mutex
    granted_at bigint,                        -- microseconds since 1970, as all below
    last_token bigint NOT NULL DEFAULT 0,
    counter_until bigint NOT NULL DEFAULT 0,  -- from then on `last_token` may be forgotten
    longest_lease bigint NOT NULL DEFAULT 0,
    rest text                                 -- waiters, other holders and the like, as JSON
) WITH (fillfactor = 50);
-- Versions and scheduled jobs.
CREATE TABLE IF NOT EXISTS fencelock_cell (
    name text COLLATE "C" PRIMARY KEY,
    value text,
    since bigint NOT NULL DEFAULT 0,
    trail text,                               -- its newest changes, as JSON
    forget_after bigint
) WITH (fillfactor = 70);
CREATE INDEX IF NOT EXISTS fencelock_cell_end ON fencelock_cell (forget_after) WHERE forget_after IS NOT NULL;
"#;

/// The migration that makes fencelock's tables where they are not, as SQL for PostgreSQL 12 and newer.
///
/// ```
/// assert!(fencelock::driver::postgres::schema().contains("CREATE TABLE IF NOT EXISTS fencelock"));
/// ```
pub fn schema() -> &'static str {
    SCHEMA
}

/// Makes the tables. Others may be at it too: whoever comes second finds that they are there.
pub(super) async fn create(client: &Client) -> Result<(), tokio_postgres::Error> {
    const TAKEN: [&str; 2] = ["23505", "42P07"];
    match client.batch_execute(SCHEMA).await {
        Err(error) if error.code().is_some_and(|code| TAKEN.contains(&code.code())) => {
            client.batch_execute(SCHEMA).await
        }
        done => done,
    }
}

/// What the parameters of the statement that writes a row have to be.
const WRITTEN: &[Type] = &[
    Type::TEXT,
    Type::TEXT,
    Type::TEXT,
    Type::INT8,
    Type::TIMESTAMPTZ,
    Type::INT4,
    Type::TEXT,
    Type::INT8,
    Type::INT8,
    Type::INT8,
    Type::INT8,
    Type::TEXT,
];

/// The same of a cell's.
const CELL: &[Type] = &[Type::TEXT, Type::TEXT, Type::INT8, Type::TEXT, Type::INT8];

/// Makes sure that the columns are of the types that the statements write.
pub(super) fn check(store: &Statement, cell_store: &Statement) -> Result<()> {
    let alike = |statement: &Statement, types| statement.params() == types;
    if alike(store, WRITTEN) && alike(cell_store, CELL) { Ok(()) } else { Err(other_shape()) }
}
