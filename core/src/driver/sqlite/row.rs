//! The rows of the tables: how SQLite reads and writes their columns, and the records of one batch.

use rusqlite::types::{FromSqlResult, ToSql, ToSqlOutput, ValueRef};
use rusqlite::{Connection, params_from_iter};

use super::fault::Fault;
use crate::driver::columns::{Row, Value, signed};
use crate::driver::record::Record;
use crate::driver::record_row;
use crate::port::LockKey;

/// The tables. The columns of a lock are those that it has in every database; moments are microseconds since 1970. No index beside the key
/// and no hidden row number: a step rewrites one page.
/// `fencelock_meta` has how far the last sweep came.
pub(super) const TABLES: &str = "CREATE TABLE fencelock_lock (
    name TEXT PRIMARY KEY NOT NULL,
    kind TEXT NOT NULL,
    holder TEXT,
    token INTEGER,
    expires_at INTEGER,
    waiting INTEGER NOT NULL,
    owner TEXT,
    granted_at INTEGER,
    last_token INTEGER NOT NULL,
    counter_until INTEGER NOT NULL,
    longest_lease INTEGER NOT NULL,
    rest TEXT,
    forget_after INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE fencelock_meta (key TEXT PRIMARY KEY NOT NULL, value) WITHOUT ROWID";

const LOAD: &str = "SELECT name, kind, owner, holder, token, granted_at, expires_at, last_token, counter_until, longest_lease, rest
    FROM fencelock_lock WHERE name = ?1";

const STORE: &str =
    "REPLACE INTO fencelock_lock VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)";

/// The records that a batch has loaded, each as it was and as it is to be. Each is read and written once, however many of the
/// steps are of its lock: thousands may hold it, and their row is as long.
pub(super) struct Rows<'a> {
    connection: &'a Connection,
    loaded: Vec<(&'a LockKey, Record, Record)>,
}

impl<'a> Rows<'a> {
    /// None yet.
    pub(super) fn of(connection: &'a Connection) -> Self {
        Self { connection, loaded: Vec::new() }
    }

    /// A lock's record, for changes.
    pub(super) fn record(&mut self, lock: &'a LockKey) -> Result<&mut Record, Fault> {
        let known = self.loaded.iter().position(|(known, ..)| *known == lock);
        let at = known.unwrap_or(self.loaded.len());
        if known.is_none() {
            let record = load(self.connection, lock)?;
            self.loaded.push((lock, record.clone(), record));
        }
        Ok(&mut self.loaded[at].2)
    }

    /// Writes what has changed.
    pub(super) fn store(&self) -> Result<(), Fault> {
        for (lock, before, record) in &self.loaded {
            if record != before {
                store(self.connection, lock, record)?;
            }
        }
        Ok(())
    }
}

/// Makes sure that the table is the one these statements need.
pub(super) fn check(connection: &Connection) -> Result<(), Fault> {
    connection.prepare_cached(LOAD)?;
    connection.prepare_cached(STORE)?;
    Ok(())
}

/// Reads a lock's record; an empty one if there is none.
pub(super) fn load(connection: &Connection, lock: &LockKey) -> Result<Record, Fault> {
    let Some(row) = one(connection, LOAD, lock.as_str())? else { return Ok(Record::default()) };
    record_row::read(&row).map_err(|error| Fault::row(error.with("name", lock.as_str())))
}

/// Writes a lock's record.
pub(super) fn store(connection: &Connection, lock: &LockKey, record: &Record) -> Result<(), Fault> {
    let forget = [signed(record.forget_after()).into()];
    let values = record_row::values(lock, record).into_iter().chain(forget);
    connection.prepare_cached(STORE)?.execute(params_from_iter(values))?;
    Ok(())
}

/// The row of this name, if there is one.
pub(super) fn one(
    connection: &Connection,
    statement: &str,
    name: &str,
) -> Result<Option<Row>, Fault> {
    let mut statement = connection.prepare_cached(statement)?;
    let columns = statement.column_count();
    let mut rows = statement.query([name])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    let value = |at| row.get_ref(at).map(value);
    Ok(Some(Row((0..columns).map(value).collect::<Result<_, _>>()?)))
}

fn value(read: ValueRef<'_>) -> Value {
    let text: FromSqlResult<_> = read.as_str();
    match (read, text) {
        (ValueRef::Null, _) => Value::Null,
        (ValueRef::Integer(number), _) => Value::Int(number),
        (_, Ok(text)) => text.into(),
        _ => Value::Unread,
    }
}

impl ToSql for Value {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        match self {
            Self::Int(number) => number.to_sql(),
            Self::Text(text) | Self::Name(text) => text.to_sql(),
            _ => rusqlite::types::Null.to_sql(),
        }
    }
}
