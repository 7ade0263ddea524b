//! The removal of rows whose names nobody uses any more, so that a table of ever new names does not grow for good.
//!
//! A row goes a week after its counter was last needed: from then on a new row of its name draws a greater token, unless the clock was set
//! back by more than that. For every 16 rows that a client makes, it looks at the next 64.

use std::time::Duration;

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
