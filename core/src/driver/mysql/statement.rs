//! The SQL. Numbers of the rules come from `port::limits`, as they do in every store.
//!
//! A statement sets columns from left to right, and each expression sees what is set already.

use std::fmt::Write;

use super::literal::{bytes, names, or_null, text};
use crate::driver::record::Record;
use crate::driver::sql::cell;
use crate::driver::sql::foreign::row_name;
use crate::driver::sql::plain::Renewing;
use crate::driver::sql::row::Written;
use crate::driver::sql::signed;
use crate::driver::sql::tables::Tables;
use crate::fence::Token;
use crate::port::LockKey;
use crate::port::limits::{COUNTER_TTLS, TOKEN_LEAD};

/// The server's clock, in µs, read where it stands: `NOW` is the moment a statement began, before it waited for a row.
pub(super) const CLOCK: &str = "TIMESTAMPDIFF(MICROSECOND, DATE'1970-01-01', SYSDATE(6))";

/// A moment before the last token, from which on the plain cases leave what is to be refused to the long way: 2255-01-01.
const LAST_YEAR: u64 = 8_993_808_000_000_000;

/// The columns that a record is read from.
const COLUMNS: &str = "name, kind, owner, holder, token, granted_at, ends, last_token, counter_until, longest_lease, rest, version, told";

/// How long the server waits for a row, in seconds: the least it can. It is asked again for as long as there is time.
const ROW_WAIT: u32 = 1;
/// How long the server keeps a row locked for a client that stands still within a transaction, in seconds.
const STALLED: u32 = 1;
/// How long a connection may lie idle, in seconds: a month.
const IDLE: u32 = 2_592_000;

/// The first statements of each connection.
pub(super) fn setup() -> String {
    format!(
        "SET NAMES utf8mb4; SET SESSION time_zone = '+00:00', sql_mode = 'STRICT_ALL_TABLES', autocommit = 1,
             innodb_lock_wait_timeout = {ROW_WAIT}, wait_timeout = {IDLE};
         SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED"
    )
}

/// The query for the server's version, whether it takes no writes, when it writes its log, and whether it can read its clock
/// twice within a statement.
pub(super) const SERVER: &str = "SELECT VERSION(), CAST(@@global.read_only AS CHAR), @@global.innodb_flush_log_at_trx_commit, SLEEP(0.001), SYSDATE(6) <> NOW(6)";

/// Takes a mutex that has no row yet, and answers the token as the last id; no row is changed if there is one. Name, owner id, who asks,
/// lease, how many tokens behind the first, twice, lease.
pub(super) fn make(Tables { table, .. }: &Tables) -> String {
    format!(
        "INSERT INTO {table} (name, version, owner, holder, token, granted_at, ends, last_token, counter_until, longest_lease)
         SELECT ?, 1, ?, ?, LAST_INSERT_ID(m.now), m.now, m.now + ?, m.now + ?, m.now + ? + {COUNTER_TTLS} * ?, ?
         FROM (SELECT {CLOCK} AS now) AS m WHERE m.now < {LAST_YEAR} ON DUPLICATE KEY UPDATE {table}.name = {table}.name"
    )
}

/// Takes a mutex that nobody holds, waits for or has left a mark at, and answers the token as the last id; otherwise changes nothing. Owner
/// id, who asks, lease three times, how many tokens behind the first, name, the highest token that is known of it, how many behind. As
/// `Record::take` does it, but that the clock is read several times, and the counter is remembered a little longer.
pub(super) fn take(Tables { table, .. }: &Tables) -> String {
    let (most, lead) = (Token::MAX.get(), TOKEN_LEAD.as_micros());
    format!(
        "UPDATE {table} SET version = version + 1, kind = 'mutex', owner = ?, holder = ?, told = NULL,
             token = GREATEST(last_token + 1, {CLOCK}), granted_at = {CLOCK}, ends = {CLOCK} + ?, longest_lease = ?,
             counter_until = GREATEST(counter_until, token + {lead} + {COUNTER_TTLS} * ?), last_token = LAST_INSERT_ID(token) + ?
         WHERE name = ? AND rest IS NULL AND (owner IS NULL OR ends <= {CLOCK}) AND last_token >= ?
             AND last_token + 1 + ? <= {CLOCK} + {lead} AND last_token < {most} - 2 * {lead} AND {CLOCK} < {LAST_YEAR}"
    )
}

/// Ends the hold of a mutex nobody waits for; otherwise changes nothing. Name, owner id.
pub(super) fn free(Tables { table, .. }: &Tables) -> String {
    format!(
        "UPDATE {table} SET version = version + 1, owner = NULL, holder = NULL, token = NULL, granted_at = NULL, ends = NULL, told = NULL
         WHERE name = ? AND owner = ? AND rest IS NULL AND ends > {CLOCK}"
    )
}

/// Renews holds of mutexes, and answers what is left of those that are there. What waits there does not matter: the lock is held. As
/// `Record::renew`.
pub(super) fn renew(Tables { table, .. }: &Tables, holds: &[Renewing<'_>]) -> String {
    let mut update = String::new();
    let mut held = Vec::with_capacity(holds.len());
    let mut sorted: Vec<_> = holds.iter().collect();
    // Rows are always locked in the same order.
    sorted.sort_unstable_by_key(|hold| hold.name);
    for hold in sorted {
        let (name, owner, ttl) = (bytes(hold.name), hold.owner, hold.ttl);
        write!(
            update,
            "UPDATE {table} SET version = version + 1, ends = GREATEST(LEAST(ends, {CLOCK} + longest_lease), {CLOCK} + {ttl}),
                 longest_lease = GREATEST(longest_lease, {ttl}), counter_until = GREATEST(counter_until, ends + {COUNTER_TTLS} * {ttl})
             WHERE name = {name} AND owner = '{owner}' AND ends > {CLOCK}; "
        )
        .expect("text takes whatever is written to it");
        held.push(format!("(name = {name} AND owner = '{owner}')"));
    }
    // One commit for all of them.
    let (begin, commit) = if holds.len() > 1 { ("BEGIN; ", "COMMIT; ") } else { ("", "") };
    format!(
        "{begin}{update}{commit}SELECT name, token, ends - {CLOCK} FROM {table} FORCE INDEX (PRIMARY)
         WHERE ({}) AND ends > {CLOCK}",
        held.join(" OR ")
    )
}

/// Records as they are, and the clock after that.
pub(super) fn look(Tables { table, .. }: &Tables, locks: &[LockKey]) -> String {
    format!(
        "SELECT {COLUMNS} FROM {table} FORCE INDEX (PRIMARY) WHERE name IN ({}); SELECT {CLOCK}",
        names(locks)
    )
}

/// Reads what is told at these locks, and where the first ticket of this channel lies, as a path in JSON.
pub(super) fn told<'a>(
    Tables { table, .. }: &Tables,
    locks: impl IntoIterator<Item = &'a LockKey>,
    channel: &str,
) -> String {
    format!(
        "SELECT name, version, told, JSON_SEARCH(rest, 'one', '{channel}', NULL, '$.waiters[*].channel')
         FROM {table} FORCE INDEX (PRIMARY) WHERE name IN ({})",
        names(locks)
    )
}

/// The names that begin with this and are remembered.
pub(super) fn remembered(Tables { table, .. }: &Tables, prefix: &str) -> String {
    let (first, length) = (bytes(prefix), prefix.len());
    format!(
        "SELECT name FROM {table} WHERE name >= {first} AND LEFT(name, {length}) = {first}
             AND (owner IS NOT NULL OR rest IS NOT NULL OR counter_until > {CLOCK}) ORDER BY name"
    )
}

/// Begins a transaction. Whoever stands still within it is cut off.
pub(super) fn begin() -> String {
    format!("SET SESSION wait_timeout = {STALLED}; BEGIN; ")
}

/// Ends a transaction in this way.
pub(super) fn end(how: &str) -> String {
    format!("{how}; SET SESSION wait_timeout = {IDLE}")
}

/// Gives a transaction up.
pub(super) fn roll_back() -> String {
    end("ROLLBACK; SET SESSION time_zone = '+00:00'")
}

/// Begins a transaction, locks rows, always in the same order, and reads them; the clock is read behind each.
pub(super) fn lock(tables: &Tables, locks: &[LockKey]) -> String {
    format!("{}{}", begin(), lock_again(tables, locks))
}

/// The same within a transaction.
fn lock_again(Tables { table, .. }: &Tables, locks: &[LockKey]) -> String {
    format!(
        "SELECT {COLUMNS}, {CLOCK} FROM {table} FORCE INDEX (PRIMARY) WHERE name IN ({}) ORDER BY name FOR UPDATE",
        names(locks)
    )
}

/// Makes rows where there are none, and locks all.
pub(super) fn insert(tables: &Tables, locks: &[LockKey]) -> String {
    let Tables { table, .. } = tables;
    let rows: Vec<_> = locks.iter().map(|lock| format!("({})", bytes(&row_name(lock)))).collect();
    format!(
        "INSERT INTO {table} (name) VALUES {} ON DUPLICATE KEY UPDATE {table}.name = {table}.name; {}",
        rows.join(", "),
        lock_again(tables, locks)
    )
}

/// Writes records, each with what is told there, and commits.
pub(super) fn store(
    Tables { table, .. }: &Tables,
    changed: &[(&LockKey, &Record, Option<String>)],
) -> String {
    let mut statements = String::new();
    for (lock, record, told) in changed {
        let written = Written::from(*record);
        let number = |number: i64| number.to_string();
        write!(
            statements,
            "UPDATE {table} SET version = version + 1, kind = '{}', holder = {}, token = {}, ends = {}, waiting = {}, owner = {},
                 granted_at = {}, last_token = {}, counter_until = {}, longest_lease = {}, rest = {}, told = {} WHERE name = {}; ",
            written.kind,
            or_null(written.holder, text),
            or_null(written.token, number),
            or_null(written.expires_at.map(signed), number),
            written.waiting,
            or_null(written.owner, |owner| format!("'{owner}'")),
            or_null(written.granted_at, number),
            written.last_token,
            written.counter_until,
            written.longest_lease,
            or_null(written.rest.as_deref(), text),
            or_null(told.as_deref(), text),
            bytes(&row_name(lock)),
        )
        .expect("text takes whatever is written to it");
    }
    statements += &end("COMMIT");
    statements
}

/// A cell as it is, and the clock after that.
pub(super) fn cell_look(Tables { cells, .. }: &Tables, name: &str) -> String {
    format!(
        "SELECT value, since, trail, forget_after FROM {cells} WHERE name = {}; SELECT {CLOCK}",
        bytes(name)
    )
}

/// Begins a transaction, makes the row of a cell if there is none, locks and reads it, and the clock after that.
pub(super) fn cell_lock(Tables { cells, .. }: &Tables, name: &str) -> String {
    let (begin, name) = (begin(), bytes(name));
    format!(
        "{begin}INSERT INTO {cells} (name) VALUES ({name}) ON DUPLICATE KEY UPDATE {cells}.name = {cells}.name;
         SELECT value, since, trail, forget_after, {CLOCK} FROM {cells} WHERE name = {name} FOR UPDATE"
    )
}

/// Writes a cell and commits.
pub(super) fn cell_store(
    Tables { cells, .. }: &Tables,
    name: &str,
    written: &cell::Written<'_>,
) -> String {
    format!(
        "UPDATE {cells} SET value = {}, since = {}, trail = {}, forget_after = {} WHERE name = {}; {}",
        or_null(written.value, text),
        written.since,
        text(&written.trail),
        or_null(written.forget_after, |ends: i64| ends.to_string()),
        bytes(name),
        end("COMMIT")
    )
}

/// Deletes some cells that have ended.
pub(super) fn cell_sweep(Tables { cells, .. }: &Tables) -> String {
    format!("DELETE FROM {cells} WHERE forget_after <= {CLOCK} ORDER BY forget_after LIMIT 64")
}
