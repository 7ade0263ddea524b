//! Cells: values with versions, one row each.

use rusqlite::{Connection, params_from_iter};

use super::fault::Fault;
use super::row::one;
use crate::driver::cell::{self, CellRecord, row_name};
use crate::driver::cell_row::{record, values};
use crate::driver::columns::signed;
use crate::port::{CellKey, Change, Look, Swap};

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
        let values = values(&change.key, &record);
        connection.prepare_cached(STORE)?.execute(params_from_iter(values))?;
    }
    connection.prepare_cached(SWEEP)?.execute([signed(now)])?;
    Ok(swap)
}

fn load(connection: &Connection, key: &CellKey) -> Result<Option<CellRecord>, Fault> {
    let Some(row) = one(connection, LOAD, &row_name(key))? else { return Ok(None) };
    record(&row).map_err(|error| Fault::row(error.with("name", &*key.name)))
}
