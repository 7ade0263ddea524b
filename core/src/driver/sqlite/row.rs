//! The lock's row: how a [`Record`] lies in the table, in columns people can read; and the rows of one batch.

use rusqlite::types::{FromSqlResult, ValueRef};
use rusqlite::{Connection, Row, params};

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::fault::Fault;
use crate::driver::record::{Holder, Record};
use crate::fence::Token;
use crate::port::{Kind, LockKey, Mode, OwnerId};

/// The tables. Times are microseconds, moments since 1970; `holders`, `waiters` and `tombstones` are JSON, NULL when there are none.
/// The holder of a mutex stands in columns of its own, the holders of other kinds in `holders`. No index beside the key
/// and no hidden row number: a step rewrites one page.
/// `fencelock_meta` has how far the last sweep came.
pub(super) const TABLES: &str = "CREATE TABLE fencelock_lock (
    name TEXT PRIMARY KEY NOT NULL,
    owner TEXT,
    token INTEGER,
    granted_at INTEGER,
    expires_at INTEGER,
    info TEXT,
    last_token INTEGER NOT NULL,
    counter_until INTEGER NOT NULL,
    waiters TEXT,
    tombstones TEXT,
    open_since INTEGER,
    kind TEXT,
    holders TEXT,
    longest_lease INTEGER NOT NULL,
    forget_after INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE fencelock_meta (key TEXT PRIMARY KEY NOT NULL, value) WITHOUT ROWID";

const LOAD: &str = "SELECT owner, token, granted_at, expires_at, info, last_token, counter_until, waiters, tombstones,
    open_since, kind, holders, longest_lease FROM fencelock_lock WHERE name = ?1";

const STORE: &str =
    "REPLACE INTO fencelock_lock (name, owner, token, granted_at, expires_at, info, last_token,
    counter_until, waiters, tombstones, open_since, kind, holders, longest_lease, forget_after)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)";

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
    let mut statement = connection.prepare_cached(LOAD)?;
    let mut rows = statement.query([lock.as_str()])?;
    let Some(row) = rows.next()? else { return Ok(Record::default()) };
    read(row).map_err(|fault| fault.with("name", lock.as_str()))
}

fn read(row: &Row<'_>) -> Result<Record, Fault> {
    let kind = match text(row, 10, "kind")? {
        None => Kind::Mutex,
        Some("read-write") => Kind::ReadWrite,
        Some("semaphore") => Kind::Semaphore,
        Some(_) => return Err(Fault::column("kind")),
    };
    let holders = match text(row, 0, "owner")? {
        None => list(row, 11, "holders")?,
        Some(owner) => vec![Holder {
            owner: OwnerId::parse(owner).ok_or_else(|| Fault::column("owner"))?,
            mode: Mode::Exclusive,
            token: token(row, 1, "token")?,
            since: number(row, 2, "granted_at")?,
            ends: number(row, 3, "expires_at")?,
            permits: 1,
            info: text(row, 4, "info")?.unwrap_or_default().into(),
        }],
    };
    Ok(Record {
        kind,
        holders,
        last: token(row, 5, "last_token")?,
        counter_until: number(row, 6, "counter_until")?,
        tickets: list(row, 7, "waiters")?,
        tombstones: list(row, 8, "tombstones")?,
        longest: number(row, 12, "longest_lease")?,
        open_since: match row.get_ref(9)? {
            ValueRef::Null => None,
            _ => Some(number(row, 9, "open_since")?),
        },
        // A file is no node of a quorum: it has as many copies as machines, which is one.
    })
}

/// Writes a lock's record.
pub(super) fn store(connection: &Connection, lock: &LockKey, record: &Record) -> Result<(), Fault> {
    let mut digits = [0; 32];
    let (holder, others) = match (record.kind, &record.holders[..]) {
        (Kind::Mutex, [holder]) => (Some(holder), &[][..]),
        (_, holders) => (None, holders),
    };
    let kind = match record.kind {
        Kind::Mutex => None,
        Kind::ReadWrite => Some("read-write"),
        Kind::Semaphore => Some("semaphore"),
    };
    connection.prepare_cached(STORE)?.execute(params![
        lock.as_str(),
        holder.map(|holder| holder.owner.encode(&mut digits)),
        holder.map(|holder| signed(holder.token)),
        holder.map(|holder| signed(holder.since)),
        holder.map(|holder| signed(holder.ends)),
        holder.map(|holder| &*holder.info),
        signed(record.last),
        signed(record.counter_until),
        json(&record.tickets, record.tickets.is_empty())?,
        json(&record.tombstones, record.tombstones.is_empty())?,
        record.open_since.map(signed),
        kind,
        json(&others, others.is_empty())?,
        signed(record.longest),
        signed(record.forget_after()),
    ])?;
    Ok(())
}

/// SQLite's numbers have a sign. A time it cannot hold is one that never comes.
pub(super) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn number(row: &Row<'_>, index: usize, column: &str) -> Result<u64, Fault> {
    let number = row.get_ref(index)?.as_i64().ok().and_then(|number| u64::try_from(number).ok());
    number.ok_or_else(|| Fault::column(column))
}

fn token(row: &Row<'_>, index: usize, column: &str) -> Result<u64, Fault> {
    let number = number(row, index, column)?;
    if number > Token::MAX.get() { Err(Fault::column(column)) } else { Ok(number) }
}

fn text<'a>(row: &'a Row<'_>, index: usize, column: &str) -> Result<Option<&'a str>, Fault> {
    let read: FromSqlResult<_> = row.get_ref(index)?.as_str_or_null();
    read.map_err(|_| Fault::column(column))
}

fn list<T: Default + DeserializeOwned>(
    row: &Row<'_>,
    index: usize,
    column: &str,
) -> Result<T, Fault> {
    match text(row, index, column)? {
        None => Ok(T::default()),
        Some(text) => serde_json::from_str(text).map_err(|_| Fault::column(column)),
    }
}

fn json(value: &impl Serialize, empty: bool) -> Result<Option<String>, Fault> {
    if empty {
        return Ok(None);
    }
    serde_json::to_string(value).map(Some).map_err(|_| Fault::column("waiters"))
}
