//! The tables of other libraries, in MySQL and MariaDB.
//!
//! Those libraries write UTC into columns that the server may keep in the time zone of a session: in theirs, which is the server's own. So
//! that zone is set for statements on their tables.

use mysql_async::{Conn, Error, Row};

use super::address::Address;
use super::fault::judge;
use super::literal::text;
use super::live::{Answered, Statement, ask};
use super::row::column;
use crate::driver::sql::fault::Fault;
use crate::driver::sql::foreign::{ForeignChange, ForeignRow, ForeignRows, ForeignTable, NOBODY};
use crate::error::{Code, Result};
use crate::port::LockKey;

/// The time in a row whose lock nobody has ever held. Nothing earlier fits a `TIMESTAMP` of every time zone.
const NEVER: &str = "TIMESTAMP'1970-01-03 00:00:00'";
/// The moment that times are counted from.
const EPOCH: &str = "TIMESTAMP'1970-01-01 00:00:00'";

/// The rows of these locks, of those that another library has a row for. With `locked` they are made where they are missing, and stay
/// locked until the transaction ends.
pub(super) async fn rows(
    conn: &mut Conn,
    address: &Address,
    locks: &[LockKey],
    locked: bool,
) -> Result<ForeignRows, Fault> {
    let mut found = ForeignRows::default();
    // Always in the same order: that of the locks.
    for lock in locks {
        let Some(table) = ForeignTable::of(lock) else { continue };
        let whose = whose(table, lock);
        let select = select(table, &whose, locked);
        let mut rows = within(conn, table, address, &select).await?.rows();
        if rows.is_empty() && locked {
            let made = format!("{}; {select}", insert(table, lock));
            rows = within(conn, table, address, &made).await?.rows();
            if rows.is_empty() {
                return Err(Fault::vanished());
            }
        }
        let row = rows.first().map(read).transpose();
        let unreadable = |error| Fault::refused(table.unusable(Code::Conflict).with_source(error));
        found.add(lock.clone(), row.map_err(unreadable)?);
    }
    Ok(found)
}

/// Writes what the rows have to say.
pub(super) async fn write(
    conn: &mut Conn,
    address: &Address,
    changes: &[(LockKey, ForeignChange)],
) -> Result<(), Fault> {
    for (lock, change) in changes {
        let Some(table) = ForeignTable::of(lock) else { continue };
        let statement = written(table, &whose(table, lock), change);
        within(conn, table, address, &statement).await?;
    }
    Ok(())
}

/// Asks in the server's own time zone.
async fn within(
    conn: &mut Conn,
    table: &ForeignTable,
    address: &Address,
    statements: &str,
) -> Result<Answered, Fault> {
    let asked = Statement::Text(format!(
        "SET SESSION time_zone = @@global.time_zone; {statements}; SET SESSION time_zone = '+00:00'"
    ));
    // One that fails is rolled back, and the time zone with it.
    ask(conn, &asked).await.map_err(|error| judge_table(table, address, &error))
}

fn read(row: &Row) -> Result<ForeignRow> {
    let micros = |at| {
        let value = column::<i64>(row, at, "until");
        value.map(|value| u64::try_from(value).unwrap_or_default())
    };
    let by = column::<Option<String>>(row, 2, "by")?.unwrap_or_default();
    Ok(ForeignRow { by, since: micros(1)?, until: micros(0)? })
}

/// The fault that a failed statement on the other library's table amounts to.
fn judge_table(table: &ForeignTable, address: &Address, error: &Error) -> Fault {
    let mut fault = judge(address, error, false);
    let Error::Server(said) = error else { return fault };
    let code = match said.code {
        1146 => Code::Unsupported,
        1142 | 1143 => Code::Auth,
        1054 | 1062 | 1136 | 1264 | 1265 | 1364 | 1366 | 1406 => Code::Conflict,
        1292 => {
            let message = "the other library's table keeps times in a zone that lacks this one (daylight saving); give it DATETIME columns, or the server a zone without";
            fault.failure.error = crate::error::Error::new(Code::Unavailable, message);
            return fault;
        }
        _ => return fault,
    };
    fault.failure.error = table.unusable(code).with("reply", said.message.clone());
    fault
}

/// Which row.
fn whose(table: &ForeignTable, lock: &LockKey) -> String {
    let region = table.region.map(|(column, value)| format!(" AND {column} = '{value}'"));
    format!("{} = {}{}", table.key, text(&table.key_of(lock)), region.unwrap_or_default())
}

/// Reads a row: until when and since when it is held, and by whom.
fn select(table: &ForeignTable, whose: &str, locked: bool) -> String {
    let ForeignTable { name, until, since, by, .. } = table;
    let micros = |column: &str| format!("TIMESTAMPDIFF(MICROSECOND, {EPOCH}, {column})");
    let lock = if locked { " FOR UPDATE" } else { "" };
    let (until, since) = (micros(until), micros(since));
    format!("SELECT {until}, {since}, {by} FROM {name} WHERE {whose}{lock}")
}

/// Makes a row of a lock that nobody holds.
fn insert(table: &ForeignTable, lock: &LockKey) -> String {
    let ForeignTable { name, key, until, since, by, .. } = table;
    let (region, value) = table.region.map_or_else(Default::default, |(column, value)| {
        (format!("{column}, "), format!("'{value}', "))
    });
    let text = text(&table.key_of(lock));
    format!(
        "INSERT INTO {name} ({key}, {region}{until}, {since}, {by}) VALUES ({text}, {value}{NEVER}, {NEVER}, '{NOBODY}')
         ON DUPLICATE KEY UPDATE {name}.{key} = {name}.{key}"
    )
}

fn written(table: &ForeignTable, whose: &str, change: &ForeignChange) -> String {
    let ForeignTable { name, until, since, by, .. } = table;
    let moment = |micros: &u64| format!("TIMESTAMPADD(MICROSECOND, {micros}, {EPOCH})");
    match change {
        ForeignChange::Hold(row) => format!(
            "UPDATE {name} SET {by} = {}, {since} = {}, {until} = {} WHERE {whose}",
            text(&row.by),
            moment(&row.since),
            moment(&row.until)
        ),
        ForeignChange::Free if table.is_deleted => format!("DELETE FROM {name} WHERE {whose}"),
        ForeignChange::Free => {
            // Cut, as a column of milliseconds would round it up.
            format!("UPDATE {name} SET {until} = UTC_TIMESTAMP(3) WHERE {whose}")
        }
    }
}
