//! How a record lies in its row, as MySQL answers it: numbers and text.

use mysql_async::Row;
use mysql_async::prelude::FromValue;

use super::told::{self, Told};
use crate::driver::record::Record;
use crate::driver::recorded::Loaded;
use crate::driver::sql::fault::bad_column;
use crate::driver::sql::foreign::row_name;
use crate::driver::sql::row::{Columns, number};
use crate::error::Result;
use crate::port::{Failure, LockKey};

/// The rows of these locks: their records, and what stands beside each.
pub(super) struct Rows {
    pub(super) records: Vec<Loaded>,
    /// In the same order.
    pub(super) beside: Vec<Beside>,
    /// The store's clock. It is read behind each row; the last reading counts.
    pub(super) now: u64,
}

/// The contents of a row besides the record.
#[derive(Default)]
pub(super) struct Beside {
    pub(super) version: u64,
    pub(super) told: Vec<Told>,
}

/// Reads rows in the order of the locks.
pub(super) fn load(rows: &[Row], locks: &[LockKey]) -> Rows {
    let (mut records, mut beside) = (Vec::new(), Vec::new());
    for lock in locks {
        let named = |row: &&Row| {
            column::<Vec<u8>>(row, 0, "name").is_ok_and(|name| name == row_name(lock).as_bytes())
        };
        let read = match rows.iter().find(named) {
            None => Ok(Default::default()),
            Some(row) => read(row).map_err(|error| error.with("name", lock.as_str())),
        };
        let (record, with) = match read {
            Ok((record, with)) => (Ok(record), with),
            Err(error) => (Err(Failure::refused(error)), Beside::default()),
        };
        records.push(Loaded { lock: lock.clone(), record });
        beside.push(with);
    }
    let now = rows.iter().filter_map(|row| column(row, 13, "now").ok()).max().unwrap_or_default();
    Rows { records, beside, now }
}

fn read(row: &Row) -> Result<(Record, Beside)> {
    let text = |at, name| column::<Option<String>>(row, at, name);
    let (owner, holder) = (text(2, "owner")?, text(3, "holder")?);
    let (kind, rest) = (column::<String>(row, 1, "kind")?, text(10, "rest")?);
    let columns = Columns {
        kind: &kind,
        owner: owner.as_deref(),
        holder: holder.as_deref(),
        token: column(row, 4, "token")?,
        granted_at: column(row, 5, "granted_at")?,
        expires_at: column(row, 6, "ends")?,
        last_token: column(row, 7, "last_token")?,
        counter_until: column(row, 8, "counter_until")?,
        longest_lease: column(row, 9, "longest_lease")?,
        rest: rest.as_deref(),
    };
    let version = number(column(row, 11, "version")?, "version")?;
    let told = told::read(text(12, "told")?.as_deref())?;
    Ok((columns.record()?, Beside { version, told }))
}

/// A column's value.
pub(super) fn column<T: FromValue>(row: &Row, at: usize, name: &'static str) -> Result<T> {
    row.get_opt(at).and_then(std::result::Result::ok).ok_or_else(|| bad_column(name))
}
