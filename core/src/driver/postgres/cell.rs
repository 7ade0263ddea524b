//! Cells: values with versions, one row each.

use tokio_postgres::Row;

use futures_util::future::join;

use super::fault::{Fault, bad_column, judge};
use super::link::Link;
use super::live::Live;
use super::row::{column, number};
use super::statement::Several;
use super::transaction::{BEGIN, Progress, Work};
use super::value::signed;
use crate::driver::cell::{self, CellRecord, row_name};
use crate::error::Result;
use crate::port::{Cell, CellKey, Change, Look, Mark, Swap};

/// What a row shows of a cell; the clock stands last in it.
pub(super) fn look(row: &Row, key: &CellKey) -> Result<Look> {
    let record = read(row).map_err(|error| error.with("name", &*key.name))?;
    Ok(cell::look(record.as_ref(), number(row, 4, "now")?))
}

fn read(row: &Row) -> Result<Option<CellRecord>> {
    // A row that was only just made.
    let Some(trail) = column::<Option<&str>>(row, 2, "trail")? else { return Ok(None) };
    let trail: Vec<Mark> = serde_json::from_str(trail).map_err(|_| bad_column("trail"))?;
    if trail.is_empty() {
        return Err(bad_column("trail"));
    }
    let value = column::<Option<&str>>(row, 0, "value")?.map(Into::into);
    let since = number(row, 1, "since")?;
    let ends = match column::<Option<i64>>(row, 3, "forget_after")? {
        None => u64::MAX,
        Some(ends) => u64::try_from(ends).map_err(|_| bad_column("forget_after"))?,
    };
    Ok(Some(CellRecord { cell: Cell { value, since, trail }, ends }))
}

/// Carries a change out, if what is there has the version it expects.
pub(super) struct Exchange(pub(super) Change);

impl Work for Exchange {
    type Done = Swap;

    async fn attempt(
        &self,
        link: &Link,
        live: &Live<Several>,
        progress: &Progress,
    ) -> Result<Swap, Fault> {
        let Self(change) = self;
        let Live { client, statements, .. } = live;
        let harmless = |error: tokio_postgres::Error| judge(&link.address, &error, false);
        let name = row_name(&change.key);
        // One flight: what is polled first is sent first.
        let (begun, (made, row)) = join(
            client.batch_execute(BEGIN),
            join(
                client.execute(&statements.cell_insert, &[&name]),
                client.query_opt(&statements.cell_lock, &[&name]),
            ),
        )
        .await;
        begun.map_err(harmless)?;
        made.map_err(harmless)?;
        let row = row.map_err(harmless)?.ok_or_else(Fault::vanished)?;
        let named =
            |error: crate::error::Error| Fault::refused(error.with("name", &*change.key.name));
        let mut record = read(&row).map_err(named)?;
        let now = number(&row, 4, "now").map_err(named)?;
        if let Some(failure) = cell::refusal(record.as_ref(), now, now) {
            return Err(Fault::refused(failure.error));
        }
        let before = record.clone();
        let swap = cell::swap(&mut record, change, now);
        let Some(CellRecord { cell, ends }) =
            record.filter(|record| Some(record) != before.as_ref())
        else {
            client.batch_execute("ROLLBACK").await.map_err(harmless)?;
            return Ok(swap);
        };
        let trail = serde_json::to_string(&cell.trail).expect("marks are plain");
        let (value, since) = (cell.value.as_deref(), signed(cell.since));
        let ends = (ends != u64::MAX).then(|| signed(ends));
        let now = signed(now);
        progress.decides();
        let (written, (swept, committed)) = join(
            client.execute(&statements.cell_store, &[&name, &value, &since, &trail, &ends]),
            join(client.execute(&statements.cell_sweep, &[&now]), client.batch_execute("COMMIT")),
        )
        .await;
        let decisive = |error: tokio_postgres::Error| judge(&link.address, &error, true);
        written.and(swept).map_err(decisive)?;
        committed.map_err(decisive)?;
        Ok(swap)
    }
}
