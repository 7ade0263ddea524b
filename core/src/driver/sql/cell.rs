//! How a cell lies in its row, and what a change makes of it.

use super::fault::{Fault, bad_column};
use super::row::number;
use super::signed;
use crate::driver::cell::{self, CellRecord};
use crate::error::Result;
use crate::port::{Cell, Change, Mark, Swap};

/// The columns a cell is read from. Moments are µs since 1970.
pub(in crate::driver) struct Columns<'a> {
    pub(in crate::driver) value: Option<&'a str>,
    pub(in crate::driver) since: Option<i64>,
    pub(in crate::driver) trail: Option<&'a str>,
    pub(in crate::driver) forget_after: Option<i64>,
}

impl Columns<'_> {
    /// The record in the columns; `None` if the row was only just made.
    pub(in crate::driver) fn record(self) -> Result<Option<CellRecord>> {
        let Some(trail) = self.trail else { return Ok(None) };
        let trail: Vec<Mark> = serde_json::from_str(trail).map_err(|_| bad_column("trail"))?;
        if trail.is_empty() {
            return Err(bad_column("trail"));
        }
        let value = self.value.map(Into::into);
        let since = number(self.since, "since")?;
        let ends = match self.forget_after {
            None => u64::MAX,
            Some(ends) => number(Some(ends), "forget_after")?,
        };
        Ok(Some(CellRecord { cell: Cell { value, since, trail }, ends }))
    }
}

/// The columns a cell is written to.
pub(in crate::driver) struct Written<'a> {
    pub(in crate::driver) value: Option<&'a str>,
    pub(in crate::driver) since: i64,
    pub(in crate::driver) trail: String,
    pub(in crate::driver) forget_after: Option<i64>,
}

impl<'a> From<&'a CellRecord> for Written<'a> {
    fn from(CellRecord { cell, ends }: &'a CellRecord) -> Self {
        Self {
            value: cell.value.as_deref(),
            since: signed(cell.since),
            trail: serde_json::to_string(&cell.trail).expect("marks are plain"),
            forget_after: (*ends != u64::MAX).then(|| signed(*ends)),
        }
    }
}

/// Carries a change out on what lies in a locked row, if that has the version it expects.
pub(in crate::driver) struct Exchange(pub(in crate::driver) Change);

impl Exchange {
    /// The answer to the change, and the record to write, if any.
    pub(in crate::driver) fn apply(
        &self,
        columns: Columns<'_>,
        now: Option<i64>,
    ) -> Result<(Swap, Option<CellRecord>), Fault> {
        let Self(change) = self;
        let named =
            |error: crate::error::Error| Fault::refused(error.with("name", &*change.key.name));
        let mut record = columns.record().map_err(named)?;
        let now = number(now, "now").map_err(named)?;
        if let Some(failure) = cell::refusal(record.as_ref(), now, now) {
            return Err(Fault::refused(failure.error));
        }
        let before = record.clone();
        let swap = cell::swap(&mut record, change, now);
        Ok((swap, record.filter(|record| Some(record) != before.as_ref())))
    }
}
