//! Cells: values with versions, one row each.

use mysql_async::Row;

use super::fault::judge;
use super::link::Link;
use super::live::{Live, Statement, ask};
use super::row::column;
use super::statement;
use crate::driver::cell::{self, row_name};
use crate::driver::sql::cell::{Columns, Exchange, Written};
use crate::driver::sql::fault::Fault;
use crate::driver::sql::row::number;
use crate::driver::sql::transaction::{Progress, Work};
use crate::error::Result;
use crate::port::{CellKey, Look, Swap};

/// The values of a row.
struct Texts {
    value: Option<String>,
    since: Option<i64>,
    trail: Option<String>,
    forget_after: Option<i64>,
}

impl Texts {
    fn of(row: &Row) -> Result<Self> {
        Ok(Self {
            value: column(row, 0, "value")?,
            since: column(row, 1, "since")?,
            trail: column(row, 2, "trail")?,
            forget_after: column(row, 3, "forget_after")?,
        })
    }

    fn columns(&self) -> Columns<'_> {
        let Self { value, since, trail, forget_after } = self;
        let (value, trail) = (value.as_deref(), trail.as_deref());
        Columns { value, since: *since, trail, forget_after: *forget_after }
    }
}

/// The cell that a row shows, at the clock that was read after the row.
pub(super) fn look(row: Option<&Row>, clock: Option<&Row>, key: &CellKey) -> Result<Look> {
    let read = |row| Texts::of(row)?.columns().record();
    let record = row.map_or(Ok(None), read).map_err(|error| error.with("name", &*key.name))?;
    let now = clock.map(|row| column(row, 0, "now")).transpose()?;
    Ok(cell::look(record.as_ref(), number(now, "now")?))
}

impl Work<Link> for Exchange {
    type Done = Swap;

    async fn attempt(
        &self,
        link: &Link,
        live: &mut Live,
        progress: &Progress,
    ) -> Result<Swap, Fault> {
        let harmless = |error: mysql_async::Error| judge(&link.address, &error, false);
        let name = row_name(&self.0.key);
        let asked = Statement::Text(statement::cell_lock(&link.tables, &name));
        let rows = ask(&mut live.conn, &asked).await.map_err(harmless)?.rows();
        let row = rows.first().ok_or_else(Fault::vanished)?;
        let read = Texts::of(row).and_then(|texts| Ok((texts, column(row, 4, "now")?)));
        let (texts, now) =
            read.map_err(|error| Fault::refused(error.with("name", &*self.0.key.name)))?;
        let (swap, changed) = self.apply(texts.columns(), now)?;
        let asked = match &changed {
            Some(record) => statement::cell_store(&link.tables, &name, &Written::from(record)),
            None => statement::roll_back(),
        };
        progress.decides();
        let written = ask(&mut live.conn, &Statement::Text(asked)).await;
        written.map_err(|error| judge(&link.address, &error, true))?;
        if changed.is_some() {
            link.sweep();
        }
        Ok(swap)
    }
}
