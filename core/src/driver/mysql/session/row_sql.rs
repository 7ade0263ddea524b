//! The SQL of locks that are rows, for one table.

use super::key::mark;
use super::tokens::Tokens;
use crate::driver::identifier::quoted;
use crate::driver::mysql::literal::{bytes, text};
use crate::driver::mysql::own_table;
use crate::driver::own_table::KeyedTable;
use crate::driver::sql::tables::Tables;
use crate::port::LockKey;

/// How long the server waits for a row, in seconds. A longer statement would hold up whoever wants the whole server read-only, as a
/// backup does.
const WAIT: u32 = 1;

/// Where the rows lie.
pub(super) struct Place {
    table: String,
    key: String,
    /// The name that whoever has a row locked has taken too, of `t`.
    mark: String,
    /// It is the user's own.
    is_own: bool,
    tokens: Tokens,
}

impl Place {
    /// fencelock's own table.
    pub(super) fn new(tables: &Tables, tokens: Tokens) -> Self {
        let (table, key) = (tables.rows.clone(), "t.name".to_owned());
        let mark = mark(None, &format!("'{table}'"), &key);
        Self { table, key, mark, is_own: false, tokens }
    }

    /// A table of the user's own.
    pub(super) fn own(table: &KeyedTable<'_>, tokens: Tokens) -> Self {
        let key = format!("t.{}", quoted('`', table.key));
        let schema = table.table.schema.map(text);
        let value = format!("CAST({key} AS CHAR)");
        let mark = mark(schema.as_deref(), &text(table.table.name), &value);
        Self { table: table.name('`'), key, mark, is_own: true, tokens }
    }

    fn is_it(&self, lock: &LockKey) -> String {
        if self.is_own {
            own_table::is_it(&self.key, &text(lock.as_str()))
        } else {
            format!("{} = {}", self.key, bytes(lock.as_str()))
        }
    }

    /// Locks the row of a lock in a transaction, and draws a token only then. One that somebody has is waited for, or left out.
    pub(super) fn wish(&self, lock: &LockKey, wait: bool) -> String {
        format!("BEGIN; {}", self.locking(lock, wait))
    }

    /// Ends a transaction that has not locked the row. Answers first whether there is such a row.
    pub(super) fn leave(&self, lock: &LockKey) -> String {
        let Self { table, .. } = self;
        let is_it = self.is_it(lock);
        format!(
            "SELECT CONNECTION_ID(), EXISTS(SELECT 1 FROM {table} AS t WHERE {is_it}); {ROLL_BACK}"
        )
    }

    /// The new holder of the row takes its mark. The former one has given it back, or is being ended: so the wait for it is no longer
    /// than a second.
    pub(super) fn locking(&self, lock: &LockKey, wait: bool) -> String {
        let Self { table, mark, .. } = self;
        let (is_it, next) = (self.is_it(lock), self.tokens.next());
        let skip = if wait { "" } else { " SKIP LOCKED" };
        format!(
            "SELECT CONNECTION_ID(), {next}, GET_LOCK({mark}, 1) FROM {table} AS t WHERE {is_it} FOR UPDATE{skip}"
        )
    }

    /// The number of the connection that has a lock.
    pub(super) fn holder(&self, lock: &LockKey) -> String {
        let Self { table, mark, .. } = self;
        format!("(SELECT IS_USED_LOCK({mark}) FROM {table} AS t WHERE {})", self.is_it(lock))
    }

    /// The names of fencelock's own rows that begin so and are held.
    pub(super) fn names(&self, prefix: &str) -> String {
        let (Self { table, mark, .. }, length, prefix) = (self, prefix.len(), bytes(prefix));
        format!(
            "SELECT t.name FROM {table} AS t WHERE t.name >= {prefix} AND LEFT(t.name, {length}) = {prefix}
             AND IS_USED_LOCK({mark}) IS NOT NULL ORDER BY t.name"
        )
    }

    /// Makes a row of fencelock's own, if there is none. What holds it up has made it.
    pub(super) fn insert(&self, lock: &LockKey) -> String {
        let (table, name) = (&self.table, bytes(lock.as_str()));
        format!("INSERT IGNORE INTO {table} (name) VALUES ({name})")
    }
}

/// How a session waits for rows.
pub(super) fn setup() -> String {
    format!("SET SESSION innodb_lock_wait_timeout = {WAIT}")
}

/// Gives the row back, and the mark before it: whoever gets the row takes it.
pub(super) const ROLL_BACK: &str = "SELECT CONNECTION_ID(), RELEASE_ALL_LOCKS(); ROLLBACK";
