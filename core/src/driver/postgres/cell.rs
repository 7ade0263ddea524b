//! Cells: values with versions, one row each.

use tokio_postgres::Row;

use futures_util::future::join;

use super::fault::judge;
use super::link::Link;
use super::live::Live;
use super::row::column;
use super::statement::Several;
use super::transaction::BEGIN;
use crate::driver::cell::{self, row_name};
use crate::driver::sql::cell::{Columns, Exchange, Written};
use crate::driver::sql::fault::Fault;
use crate::driver::sql::row::number;
use crate::driver::sql::transaction::{Progress, Work};
use crate::error::Result;
use crate::port::{CellKey, Look, Swap};

/// The cell that a row shows; the clock is the last column of the row.
pub(super) fn look(row: &Row, key: &CellKey) -> Result<Look> {
    let record =
        columns(row).and_then(Columns::record).map_err(|error| error.with("name", &*key.name))?;
    Ok(cell::look(record.as_ref(), number(column(row, 4, "now")?, "now")?))
}

fn columns(row: &Row) -> Result<Columns<'_>> {
    Ok(Columns {
        value: column(row, 0, "value")?,
        since: column(row, 1, "since")?,
        trail: column(row, 2, "trail")?,
        forget_after: column(row, 3, "forget_after")?,
    })
}

impl Work<Link> for Exchange {
    type Done = Swap;

    async fn attempt(
        &self,
        link: &Link,
        live: &mut Live<Several>,
        progress: &Progress,
    ) -> Result<Swap, Fault> {
        let Live { client, statements, .. } = live;
        let harmless = |error: tokio_postgres::Error| judge(&link.address, &error, false);
        let name = row_name(&self.0.key);
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
        let read = columns(&row).and_then(|columns| Ok((columns, column(&row, 4, "now")?)));
        let (columns, now) =
            read.map_err(|error| Fault::refused(error.with("name", &*self.0.key.name)))?;
        let (swap, changed) = self.apply(columns, now)?;
        let Some(record) = changed else {
            client.batch_execute("ROLLBACK").await.map_err(harmless)?;
            return Ok(swap);
        };
        let Written { value, since, trail, forget_after } = Written::from(&record);
        progress.decides();
        let (written, (swept, committed)) = join(
            client.execute(&statements.cell_store, &[&name, &value, &since, &trail, &forget_after]),
            join(client.execute(&statements.cell_sweep, &[&now]), client.batch_execute("COMMIT")),
        )
        .await;
        let decisive = |error: tokio_postgres::Error| judge(&link.address, &error, true);
        written.and(swept).map_err(decisive)?;
        committed.map_err(decisive)?;
        Ok(swap)
    }
}
