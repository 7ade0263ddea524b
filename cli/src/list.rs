//! `fencelock ls`: the locks a store knows.

use std::process::ExitCode;

use clap::Args;
use fencelock::Client;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};

use crate::exit::{Failure, finish, print};
use crate::inspect::json;
use crate::store::Store;
use crate::view::{JSON, LockView, Output};

/// How many locks are read from the store at a time.
const AT_A_TIME: usize = 64;

const NOTES: &str = "\
The human output has one line for each lock, with its first three waiters. `inspect` and JSON have all waiters.";

/// List the locks the store knows: those that are held or waited for, and free ones whose last token it still keeps.
#[derive(Args)]
#[command(after_long_help = format!("{NOTES}\n\n{JSON}"))]
pub(crate) struct List {
    /// List only locks whose name begins with this.
    prefix: Option<String>,
    /// Output format; `json` is an array of locks.
    #[arg(short, long, value_enum, default_value = "human")]
    output: Output,
    #[command(flatten)]
    store: Store,
}

impl List {
    pub(crate) fn execute(self) -> ExitCode {
        finish(async move { self.show().await.map(|()| 0) })
    }

    async fn show(&self) -> Result<(), Failure> {
        let views = self.store.look(async |client: &Client| self.views(client).await).await?;
        print(&match self.output {
            Output::Json => json(&views),
            Output::Human if views.is_empty() => "no locks\n".to_owned(),
            Output::Human => table(&views),
        })
    }

    async fn views(&self, client: &Client) -> Result<Vec<LockView>, Failure> {
        let names = client.names(self.prefix.as_deref().unwrap_or_default()).await?;
        stream::iter(names)
            .map(|name| async {
                match client.lock(&name).inspect().await {
                    Ok(state) => Ok(LockView::new(name, state)),
                    // One that cannot be read does not hide the others; a store that cannot be asked does.
                    Err(error) if error.retryable() => Err(Failure::from(error)),
                    Err(error) => Ok(LockView::unreadable(name, &error)),
                }
            })
            .buffered(AT_A_TIME)
            .try_collect()
            .await
    }
}

/// Columns as wide as their widest cell; the last one is not filled up.
fn table(views: &[LockView]) -> String {
    let rows: Vec<[String; LockView::COLUMNS.len()]> = [LockView::COLUMNS.map(str::to_owned)]
        .into_iter()
        .chain(views.iter().map(LockView::row))
        .collect();
    let mut widths = LockView::COLUMNS.map(|_| 0);
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let line = |row: &[String; LockView::COLUMNS.len()]| {
        let cells = row.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned() + "\n"
    };
    rows.iter().map(line).collect()
}
