//! The tables of other libraries, in PostgreSQL.

use tokio_postgres::types::Type;
use tokio_postgres::{Client, Row};

use super::address::Address;
use super::fault::judge;
use super::row::column;
use crate::driver::sql::fault::Fault;
use crate::driver::sql::foreign::{
    ForeignChange, ForeignRow, ForeignRows, ForeignTable, NOBODY, PATIENCE,
};
use crate::driver::sql::signed;
use crate::error::Code;
use crate::port::LockKey;

/// The time in a row whose lock nobody has ever held.
const NEVER: &str = "timestamp 'epoch'";

/// The rows of these locks, of those that another library has a row for. With `locked` they are made where they are missing, and stay
/// locked until the transaction ends.
pub(super) async fn rows(
    client: &Client,
    address: &Address,
    locks: &[LockKey],
    locked: bool,
) -> Result<ForeignRows, Fault> {
    let mut found = ForeignRows::default();
    // Always in the same order: that of the locks.
    for lock in locks {
        let Some(table) = ForeignTable::of(lock) else { continue };
        let fault = |error: tokio_postgres::Error| judge_table(table, address, &error);
        let key = table.key_of(lock);
        let select = select(table, locked);
        let ask = async || client.query_typed(&select, &[(&key, Type::TEXT)]).await;
        if locked {
            let patience = format!("SET LOCAL lock_timeout = {}", PATIENCE.as_millis() / 2);
            client.batch_execute(&patience).await.map_err(fault)?;
        }
        let mut rows = ask().await.map_err(fault)?;
        if rows.is_empty() && locked {
            let insert = insert(table);
            client.query_typed(&insert, &[(&key, Type::TEXT)]).await.map_err(fault)?;
            rows = ask().await.map_err(fault)?;
            if rows.is_empty() {
                return Err(Fault::vanished());
            }
        }
        let row = rows.first().map(read).transpose();
        let row =
            row.map_err(|error| Fault::refused(table.unusable(Code::Conflict).with_source(error)))?;
        found.add(lock.clone(), row);
    }
    Ok(found)
}

/// Writes what the rows have to say.
pub(super) async fn write(
    client: &Client,
    address: &Address,
    changes: &[(LockKey, ForeignChange)],
) -> Result<(), Fault> {
    for (lock, change) in changes {
        let Some(table) = ForeignTable::of(lock) else { continue };
        let key = table.key_of(lock);
        let written = match change {
            ForeignChange::Hold(ForeignRow { by, since, until }) => {
                let (since, until) = (signed(*since), signed(*until));
                let values: [(&(dyn tokio_postgres::types::ToSql + Sync), Type); 4] = [
                    (&key, Type::TEXT),
                    (by, Type::TEXT),
                    (&since, Type::INT8),
                    (&until, Type::INT8),
                ];
                client.query_typed(&hold(table), &values).await
            }
            ForeignChange::Free => client.query_typed(&free(table), &[(&key, Type::TEXT)]).await,
        };
        written.map_err(|error| judge_table(table, address, &error))?;
    }
    Ok(())
}

fn read(row: &Row) -> crate::error::Result<ForeignRow> {
    let micros = |at| {
        let value = column::<i64>(row, at, "until");
        value.map(|value| u64::try_from(value).unwrap_or_default())
    };
    // One of fixed length is filled up.
    let by = column::<Option<&str>>(row, 2, "by")?.unwrap_or_default().trim_end().to_owned();
    // Times with a zone mean something else in each session that writes UTC without saying so.
    if column::<bool>(row, 3, "zone")? {
        return Err(crate::driver::sql::fault::bad_column("until"));
    }
    Ok(ForeignRow { by, since: micros(1)?, until: micros(0)? })
}

/// The fault that a failed statement on the other library's table amounts to.
fn judge_table(table: &ForeignTable, address: &Address, error: &tokio_postgres::Error) -> Fault {
    let mut fault = judge(address, error, false);
    let code = match error.code().map(tokio_postgres::error::SqlState::code) {
        Some("42P01") => Code::Unsupported,
        Some("42501") => Code::Auth,
        Some(code)
            if code.starts_with("42") || code.starts_with("22") || code.starts_with("23") =>
        {
            Code::Conflict
        }
        _ => return fault,
    };
    let said = error.as_db_error().map(|error| error.message().to_owned()).unwrap_or_default();
    fault.failure.error = table.unusable(code).with("reply", said);
    fault
}

/// Which row. $1 key.
fn whose(table: &ForeignTable) -> String {
    let region = table.region.map(|(column, value)| format!(" AND {column} = '{value}'"));
    format!("{} = $1::{}{}", table.key, table.key_type, region.unwrap_or_default())
}

/// Reads a row: until when and since when it is held, and by whom.
fn select(table: &ForeignTable, locked: bool) -> String {
    let ForeignTable { name, until, since, by, .. } = table;
    let micros = |column: &str| format!("(extract(epoch FROM {column}) * 1000000)::bigint");
    let lock = if locked { " FOR UPDATE" } else { "" };
    let (until, since, whose) = (micros(until), micros(since), whose(table));
    let zone = format!("pg_typeof({}) = 'timestamptz'::regtype", table.until);
    format!("SELECT {until}, {since}, {by}::text, {zone} FROM {name} WHERE {whose}{lock}")
}

/// Makes a row of a lock that nobody holds. $1 key.
fn insert(table: &ForeignTable) -> String {
    let ForeignTable { name, key, until, since, by, .. } = table;
    let (region, value) = table.region.map_or_else(Default::default, |(column, value)| {
        (format!("{column}, "), format!("'{value}', "))
    });
    format!(
        "INSERT INTO {name} ({key}, {region}{until}, {since}, {by}) VALUES ($1, {value}{NEVER}, {NEVER}, '{NOBODY}') ON CONFLICT DO NOTHING"
    )
}

/// Has a lock be held. $1 key, $2 by whom, $3 since when, $4 until when. Both libraries keep times in UTC.
fn hold(table: &ForeignTable) -> String {
    let ForeignTable { name, until, since, by, .. } = table;
    let moment = |value: &str| format!("{NEVER} + {value} * interval '1 microsecond'");
    let (begin, end, whose) = (moment("$3"), moment("$4"), whose(table));
    format!("UPDATE {name} SET {by} = $2, {since} = {begin}, {until} = {end} WHERE {whose}")
}

/// Gives a lock back. $1 key.
fn free(table: &ForeignTable) -> String {
    let ForeignTable { name, until, .. } = table;
    let whose = whose(table);
    if table.is_deleted {
        return format!("DELETE FROM {name} WHERE {whose}");
    }
    // Cut, as a column of milliseconds would round it up.
    let now = "date_trunc('milliseconds', timezone('utc', clock_timestamp()))";
    format!("UPDATE {name} SET {until} = {now} WHERE {whose}")
}
