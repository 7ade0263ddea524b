//! The rows of other libraries: how they are read, locked and written.

use super::dialect::{Connection, Dialect};
use super::fault::{Fault, bad_column};
use super::foreign::{ForeignChange, ForeignRow, ForeignRows, ForeignTable, NOBODY};
use super::link::Link;
use super::signed;
use super::statement::{Answer, Row, Statement, Value, column};
use crate::error::{Code, Result};
use crate::port::LockKey;

/// The rows of these locks as they are, of those that another library has a row for.
pub(super) async fn look<D: Dialect>(
    link: &Link<D>,
    locks: &[LockKey],
) -> Result<ForeignRows, Fault> {
    let mut found = ForeignRows::default();
    for lock in locks {
        let Some(table) = ForeignTable::of(lock) else { continue };
        let asked = D::around_foreign(vec![select::<D>(table, lock, "")], false);
        let answer = D::ask_of(link, asked, false, D::OF_FOREIGN).await;
        let row = read(table, &answer.map_err(|fault| unusable(table, fault))?)?;
        found.add(lock.clone(), row);
    }
    Ok(found)
}

/// The same rows. They are made where they are missing, and stay locked until the transaction ends.
pub(super) async fn locked<D: Dialect>(
    connection: &mut D::Connection,
    locks: &[LockKey],
) -> Result<ForeignRows, Fault> {
    let mut found = ForeignRows::default();
    // Always in the same order: that of the locks.
    for lock in locks {
        let Some(table) = ForeignTable::of(lock) else { continue };
        let select = select::<D>(table, lock, " FOR UPDATE");
        let mut answer = ask::<D>(connection, table, vec![select.clone()]).await?;
        if answer.row().is_none() {
            let made = vec![insert::<D>(table, lock), select];
            answer = ask::<D>(connection, table, made).await?;
            if answer.row().is_none() {
                return Err(Fault::vanished());
            }
        }
        found.add(lock.clone(), read(table, &answer)?);
    }
    Ok(found)
}

/// Writes what the rows have to say.
pub(super) async fn write<D: Dialect>(
    connection: &mut D::Connection,
    changes: &[(LockKey, ForeignChange)],
) -> Result<(), Fault> {
    for (lock, change) in changes {
        let Some(table) = ForeignTable::of(lock) else { continue };
        ask::<D>(connection, table, vec![written::<D>(table, lock, change)]).await?;
    }
    Ok(())
}

async fn ask<D: Dialect>(
    connection: &mut D::Connection,
    table: &ForeignTable,
    statements: Vec<Statement>,
) -> Result<Answer, Fault> {
    let asked = D::around_foreign(statements, true);
    let answer = connection.ask_of(&asked, false, D::OF_FOREIGN).await;
    answer.map_err(|fault| unusable(table, fault))
}

/// The fault that a failed statement on the other library's table amounts to.
fn unusable(table: &ForeignTable, mut fault: Fault) -> Fault {
    let error = &fault.failure.error;
    if error.message().is_empty() {
        let reply = error.fields().get("reply").cloned().unwrap_or_default();
        fault.failure.error = table.unusable(error.code()).with("reply", reply);
    }
    fault
}

fn read(table: &ForeignTable, answer: &Answer) -> Result<Option<ForeignRow>, Fault> {
    let row = answer.row().map(read_row).transpose();
    row.map_err(|error| Fault::refused(table.unusable(Code::Conflict).with_source(error)))
}

fn read_row(row: &Row) -> Result<ForeignRow> {
    let micros = |at, name| {
        let value = column::<i64>(row, at, name);
        value.map(|value| u64::try_from(value).unwrap_or_default())
    };
    // One of fixed length is filled up.
    let by = column::<Option<&str>>(row, 2, "by")?.unwrap_or_default().trim_end().to_owned();
    // Times with a zone mean something else in each session that writes UTC without saying so.
    if column::<bool>(row, 3, "zone")? {
        return Err(bad_column("until"));
    }
    Ok(ForeignRow { by, since: micros(1, "since")?, until: micros(0, "until")? })
}

/// Which row. $1 key.
fn which<D: Dialect>(table: &ForeignTable) -> String {
    let region = table.region.map(|(column, value)| format!(" AND {column} = '{value}'"));
    let key = D::foreign_key("$1", table.key_type);
    format!("{} = {key}{}", table.key, region.unwrap_or_default())
}

/// Reads a row: until when and since when it is held, and by whom.
fn select<D: Dialect>(table: &ForeignTable, lock: &LockKey, lock_it: &str) -> Statement {
    let ForeignTable { name, until, since, by, .. } = table;
    let (columns, which) = (D::foreign_columns(until, since, by), which::<D>(table));
    let text = format!("SELECT {columns} FROM {name} WHERE {which}{lock_it}");
    Statement::once(text, [Value::Text(table.key_of(lock))])
}

/// Makes a row of a lock that nobody holds.
fn insert<D: Dialect>(table: &ForeignTable, lock: &LockKey) -> Statement {
    let ForeignTable { name, key, until, since, by, .. } = table;
    let (region, value) = table.region.map_or_else(Default::default, |(column, value)| {
        (format!("{column}, "), format!("'{value}', "))
    });
    let ([_, never, _], unless_there) = (D::foreign_times("0"), D::unless_there(name, key));
    let text = format!(
        "INSERT INTO {name} ({key}, {region}{until}, {since}, {by}) VALUES ($1, {value}{never}, {never}, '{NOBODY}') {unless_there}"
    );
    Statement::once(text, [Value::Text(table.key_of(lock))])
}

/// Has a lock be held, or gives it back. Both libraries keep times in UTC.
fn written<D: Dialect>(table: &ForeignTable, lock: &LockKey, change: &ForeignChange) -> Statement {
    let ForeignTable { name, until, since, by, .. } = table;
    let (key, which) = (Value::Text(table.key_of(lock)), which::<D>(table));
    match change {
        ForeignChange::Hold(row) => {
            let ([begin, ..], [end, ..]) = (D::foreign_times("$3"), D::foreign_times("$4"));
            let text = format!(
                "UPDATE {name} SET {by} = $2, {since} = {begin}, {until} = {end} WHERE {which}"
            );
            let (since, until) = (signed(row.since), signed(row.until));
            Statement::once(text, [key, row.by.clone().into(), since.into(), until.into()])
        }
        ForeignChange::Free if table.is_deleted => {
            Statement::once(format!("DELETE FROM {name} WHERE {which}"), [key])
        }
        ForeignChange::Free => {
            let [.., now] = D::foreign_times("0");
            Statement::once(format!("UPDATE {name} SET {until} = {now} WHERE {which}"), [key])
        }
    }
}
