//! Cells: values with versions, one row each.

use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row, params};

use super::fault::Fault;
use super::row::signed;
use crate::driver::cell::{self, CellRecord, row_name};
use crate::port::{Cell, CellKey, Change, Look, Mark, Swap};

/// The table. `name` is the family and the name, `trail` the newest changes as JSON, times are microseconds since 1970;
/// a row with `forget_after` counts as absent from then on.
pub(super) const TABLE: &str = "CREATE TABLE fencelock_cell (
    name TEXT PRIMARY KEY NOT NULL,
    value TEXT,
    since INTEGER NOT NULL,
    trail TEXT NOT NULL,
    forget_after INTEGER
);
CREATE INDEX fencelock_cell_end ON fencelock_cell (forget_after) WHERE forget_after IS NOT NULL";
const LOAD: &str = "SELECT value, since, trail, forget_after FROM fencelock_cell WHERE name = ?1";
const STORE: &str = "REPLACE INTO fencelock_cell (name, value, since, trail, forget_after)
    VALUES (?1, ?2, ?3, ?4, ?5)";
/// With every change a few that have ended go.
const SWEEP: &str = "DELETE FROM fencelock_cell WHERE name IN
    (SELECT name FROM fencelock_cell WHERE forget_after <= ?1 ORDER BY forget_after LIMIT 4)";

/// Makes sure that the table is the one these statements need.
pub(super) fn check(connection: &Connection) -> Result<(), Fault> {
    for statement in [LOAD, STORE, SWEEP] {
        connection.prepare_cached(statement)?;
    }
    Ok(())
}

/// The cell at `now`.
pub(super) fn look(connection: &Connection, key: &CellKey, now: u64) -> Result<Look, Fault> {
    Ok(cell::look(load(connection, key)?.as_ref(), now))
}

/// Carries a change out, within a transaction.
pub(super) fn swap(connection: &Connection, change: &Change, now: u64) -> Result<Swap, Fault> {
    let before = load(connection, &change.key)?;
    if let Some(failure) = cell::refusal(before.as_ref(), now, now) {
        return Err(failure.error.into());
    }
    let mut record = before.clone();
    let swap = cell::swap(&mut record, change, now);
    if let Some(record) = record.filter(|record| Some(record) != before.as_ref()) {
        store(connection, &change.key, &record)?;
    }
    connection.prepare_cached(SWEEP)?.execute([signed(now)])?;
    Ok(swap)
}

fn load(connection: &Connection, key: &CellKey) -> Result<Option<CellRecord>, Fault> {
    let mut statement = connection.prepare_cached(LOAD)?;
    let mut rows = statement.query([row_name(key)])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    read(row).map(Some).map_err(|fault| fault.with("name", &key.name))
}

fn read(row: &Row<'_>) -> Result<CellRecord, Fault> {
    let value = row.get_ref(0)?.as_str_or_null().map_err(|_| Fault::column("value"))?;
    let trail = row.get_ref(2)?.as_str().map_err(|_| Fault::column("trail"))?;
    let trail: Vec<Mark> = serde_json::from_str(trail).map_err(|_| Fault::column("trail"))?;
    if trail.is_empty() {
        return Err(Fault::column("trail"));
    }
    let ends = match row.get_ref(3)? {
        ValueRef::Null => u64::MAX,
        end => unsigned(end, "forget_after")?,
    };
    let since = unsigned(row.get_ref(1)?, "since")?;
    Ok(CellRecord { cell: Cell { value: value.map(Into::into), since, trail }, ends })
}

fn store(connection: &Connection, key: &CellKey, record: &CellRecord) -> Result<(), Fault> {
    let CellRecord { cell, ends } = record;
    let trail = serde_json::to_string(&cell.trail).map_err(|_| Fault::column("trail"))?;
    connection.prepare_cached(STORE)?.execute(params![
        row_name(key),
        cell.value.as_deref(),
        signed(cell.since),
        trail,
        (*ends != u64::MAX).then(|| signed(*ends)),
    ])?;
    Ok(())
}

fn unsigned(value: ValueRef<'_>, column: &str) -> Result<u64, Fault> {
    let number = value.as_i64().ok().and_then(|number| u64::try_from(number).ok());
    number.ok_or_else(|| Fault::column(column))
}
