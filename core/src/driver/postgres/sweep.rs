//! The removal of rows whose names nobody uses any more, so that a table of ever new names does not grow for good.
//!
//! A row goes a week after its counter was last needed: from then on a new row of its name draws a greater token, unless the clock was set
//! back by more than that. For every 16 rows that a client makes, it looks at the next 64.

use std::sync::Arc;
use std::time::Duration;

use super::link::Link;
use crate::error::Code;

/// How long a row stays after the end of its counter.
pub(super) const KEPT: Duration = Duration::from_hours(7 * 24);
/// How many rows are looked at.
pub(super) const PART: usize = 64;
/// After so many rows that were made.
const EVERY: u32 = 16;

/// How far a client has come.
#[derive(Default)]
pub(super) struct Sweep {
    made: u32,
    /// The last name that was looked at.
    last: String,
    /// The user may not delete rows; then they stay.
    forbidden: bool,
}

impl Sweep {
    /// A row was made. Behind which name to look, if it is time.
    pub(super) fn row_made(&mut self) -> Option<String> {
        self.made += 1;
        if self.forbidden || self.made < EVERY {
            return None;
        }
        self.made = 0;
        Some(self.last.clone())
    }

    /// How far it came, or why not. Behind the last name it begins anew.
    pub(super) fn swept(&mut self, last: Result<Option<String>, Code>) {
        match last {
            Ok(last) => self.last = last.unwrap_or_default(),
            Err(code) => self.forbidden = code == Code::Auth,
        }
    }
}

impl Link {
    /// A row was made. Sweeps beside whoever made it, if it is time.
    pub(super) fn row_made(self: &Arc<Self>) {
        let Some(from) = self.sweep.lock().row_made() else { return };
        let link = self.clone();
        self.runtime.spawn(Box::pin(async move {
            let Ok(live) = link.single().await else { return };
            let asked = async { live.client.query_one(&live.statements.sweep, &[&from]).await };
            let swept = link.ask(&live, asked, false).await;
            let swept = swept.map(|row| row.get(0));
            link.sweep.lock().swept(swept.map_err(|fault| fault.failure.error.code()));
        }));
    }
}
