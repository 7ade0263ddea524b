//! How a cell lies in its row, and what a change makes of it.

use std::time::Duration;

use super::dialect::{Connection, Dialect, each};
use super::fault::Fault;
use super::link::Link;
use super::statement::{Answer, Statement, name};
use super::transaction::{Progress, Work};
use crate::driver::cell::{self, CellRecord, row_name};
use crate::driver::cell_row::{record, values};
use crate::error::Result;
use crate::port::{CellKey, Change, Look, Swap};

/// How often a client that changes cells deletes some that have ended.
const SWEEP: Duration = Duration::from_secs(5);

/// The statement that writes a record into its row.
fn store<D: Dialect>(link: &Link<D>, key: &CellKey, record: &CellRecord) -> Statement {
    Statement::kept(&link.texts.cell_store, values(key, record))
}

/// The cell as it is.
pub(super) async fn look<D: Dialect>(link: &Link<D>, key: &CellKey) -> Result<Look> {
    let asked = each(&link.texts.cell_look, &[name(row_name(key))]);
    let answer: Answer = link.ask(asked, false).await.map_err(|fault| fault.failure.error)?;
    let row = answer.all().find(|row| row.0.len() > 3);
    let record = row.map_or(Ok(None), record).map_err(|error| error.with("name", &*key.name))?;
    Ok(cell::look(record.as_ref(), answer.clock()?))
}

/// Carries a change out, if what is there has the version it expects.
pub(super) struct Exchange(pub(super) Change);

impl Exchange {
    /// The answer to the change, and the record to write, if any.
    fn apply(&self, answer: &Answer) -> Result<(Swap, Option<CellRecord>), Fault> {
        let Self(change) = self;
        let row = answer.row().ok_or_else(Fault::vanished)?;
        let read = record(row).and_then(|record| Ok((record, answer.clock()?)));
        let (mut record, now) =
            read.map_err(|error| Fault::refused(error.with("name", &*change.key.name)))?;
        if let Some(failure) = cell::refusal(record.as_ref(), now, now) {
            return Err(Fault::refused(failure.error));
        }
        let before = record.clone();
        let swap = cell::swap(&mut record, change, now);
        Ok((swap, record.filter(|record| Some(record) != before.as_ref())))
    }
}

impl<D: Dialect> Work<D> for Exchange {
    type Done = Swap;

    async fn attempt(
        &self,
        link: &Link<D>,
        connection: &mut D::Connection,
        progress: &Progress,
    ) -> Result<Swap, Fault> {
        let Self(change) = self;
        let [mut asked, commit, roll_back] = connection.transaction();
        for text in [&link.texts.cell_insert, &link.texts.cell_lock] {
            asked.push(Statement::kept(text, [name(row_name(&change.key))]));
        }
        let answer = connection.ask(&asked, false).await?;
        let (swap, changed) = self.apply(&answer)?;
        let Some(record) = changed else {
            connection.ask(&roll_back, false).await?;
            return Ok(swap);
        };
        let mut asked = vec![store(link, &change.key, &record)];
        asked.extend(commit);
        progress.decides();
        connection.ask(&asked, true).await?;
        sweep(link);
        Ok(swap)
    }
}

/// Deletes some cells that have ended, now and then. Nobody waits for it.
fn sweep<D: Dialect>(link: &Link<D>) {
    let Some(link) = link.weak.upgrade().filter(|link| link.sweeps_cells(SWEEP)) else { return };
    link.runtime.clone().spawn(Box::pin(async move {
        // What is left is deleted the next time.
        let _ = link.ask(vec![Statement::once(link.texts.cell_sweep.clone(), [])], false).await;
    }));
}
