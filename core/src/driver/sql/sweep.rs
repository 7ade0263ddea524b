//! The removal of rows whose names nobody uses any more, so that a table of ever new names does not grow for good.
//!
//! A row goes a week after its counter was last needed: from then on a new row of its name draws a greater token, unless the clock was set
//! back by more than that. For every 16 rows that a client makes, it looks at the next 64.

use std::sync::Arc;
use std::time::Duration;

use super::dialect::Dialect;
use super::link::Link;
use super::statement::{Row, Statement, Value, column, name};
use crate::error::Code;

/// How long a row stays after it was needed.
pub(in crate::driver) const KEPT: Duration = Duration::from_hours(7 * 24);
/// How many rows are looked at.
pub(in crate::driver) const PART: usize = 64;
/// After so many rows that were made.
const EVERY: u32 = 16;

/// How far a client has come.
#[derive(Default)]
pub(in crate::driver) struct Sweep {
    made: u32,
    /// The last name that was looked at.
    last: String,
    /// The user may not delete rows; then they stay.
    forbidden: bool,
}

impl Sweep {
    /// A row was made. Behind which name to look, if it is time.
    pub(in crate::driver) fn row_made(&mut self) -> Option<String> {
        self.made += 1;
        if self.forbidden || self.made < EVERY {
            return None;
        }
        self.made = 0;
        Some(self.last.clone())
    }

    /// How far it came, or why not. Behind the last name it begins anew.
    pub(in crate::driver) fn swept(&mut self, last: Result<Option<String>, Code>) {
        match last {
            Ok(last) => self.last = last.unwrap_or_default(),
            Err(code) => self.forbidden = code == Code::Auth,
        }
    }
}

impl<D: Dialect> Link<D> {
    /// A row was made. Sweeps beside whoever made it, if it is time.
    pub(super) fn row_made(&self) {
        let Some(from) = self.sweep.lock().row_made() else { return };
        let Some(link) = self.weak.upgrade() else { return };
        self.runtime.spawn(Box::pin(async move {
            let swept = link.sweep_behind(from).await;
            link.sweep.lock().swept(swept);
        }));
    }

    /// Deletes unused rows behind this name. Answers the last that it looked at.
    async fn sweep_behind(self: &Arc<Self>, from: String) -> Result<Option<String>, Code> {
        let looked = Statement::kept(&self.texts.sweep_look, [name(from)]);
        let looked = self.ask(vec![looked], false).await;
        let rows = looked.map_err(|fault| fault.failure.error.code())?.rows();
        let read = |row: &Row| column::<&str>(row, 0, "name").ok().map(str::to_owned);
        let unused = |row: &&Row| column::<bool>(row, 1, "unused").is_ok_and(|it| it);
        let old: Vec<String> = rows.iter().filter(unused).filter_map(read).collect();
        let delete = |names| {
            let delete = Statement::once(self.texts.sweep.clone(), [Value::Names(names)]);
            self.ask(vec![delete], false)
        };
        if !old.is_empty()
            && let Err(fault) = delete(old.clone()).await
        {
            let code = fault.failure.error.code();
            if code == Code::Auth {
                return Err(code);
            }
            // Somebody has one of them locked: that one stays.
            for name in old {
                let _ = delete(vec![name]).await;
            }
        }
        Ok(rows.last().and_then(read))
    }
}
