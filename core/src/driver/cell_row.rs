//! How a cell lies in its row.

use super::cell::{CellRecord, row_name};
use super::columns::{Row, Value, bad_column, column, name, number, signed};
use crate::error::Result;
use crate::port::{Cell, CellKey, Mark};

/// The record in a row; `None` if the row was only just made.
pub(super) fn record(row: &Row) -> Result<Option<CellRecord>> {
    let Some(trail) = column::<Option<&str>>(row, 2, "trail")? else { return Ok(None) };
    let trail: Vec<Mark> = serde_json::from_str(trail).map_err(|_| bad_column("trail"))?;
    if trail.is_empty() {
        return Err(bad_column("trail"));
    }
    let value = column::<Option<&str>>(row, 0, "value")?.map(Into::into);
    let since = number(column(row, 1, "since")?, "since")?;
    let ends = match column(row, 3, "forget_after")? {
        None => u64::MAX,
        Some(ends) => number(Some(ends), "forget_after")?,
    };
    Ok(Some(CellRecord { cell: Cell { value, since, trail }, ends }))
}

/// The values that have a row hold this record, its name first.
pub(super) fn values(key: &CellKey, record: &CellRecord) -> [Value; 5] {
    let CellRecord { cell, ends } = record;
    let trail = serde_json::to_string(&cell.trail).expect("marks are plain");
    [
        name(row_name(key)),
        cell.value.as_deref().into(),
        signed(cell.since).into(),
        trail.into(),
        (*ends != u64::MAX).then(|| signed(*ends)).into(),
    ]
}
