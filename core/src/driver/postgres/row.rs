//! How a record lies in its row, as PostgreSQL takes it.

use futures_util::future::try_join_all;
use tokio_postgres::types::FromSql;
use tokio_postgres::{Client, Row, Statement};

use super::value::{Hidden, Moment};
use crate::driver::record::Record;
use crate::driver::recorded::Loaded;
use crate::driver::sql::fault::bad_column;
use crate::driver::sql::foreign::row_name;
use crate::driver::sql::row::{Columns, Written};
use crate::driver::sql::signed;
use crate::error::Result;
use crate::port::{Failure, LockKey};

/// The records of these locks among the rows, and the store's clock. The clock is read behind each row; the last reading counts.
pub(super) fn load(rows: &[Row], locks: Vec<LockKey>) -> (Vec<Loaded>, u64) {
    let of = |lock: &LockKey| {
        let named = |row: &&Row| {
            row.try_get::<_, Option<&str>>(0).is_ok_and(|name| name == Some(&*row_name(lock)))
        };
        let Some(row) = rows.iter().find(named) else { return Ok(Record::default()) };
        read(row).map_err(|error| Failure::refused(error.with("name", lock.as_str())))
    };
    let now =
        rows.iter().filter_map(|row| row.try_get::<_, i64>(11).ok()).max().unwrap_or_default();
    let load = |lock: LockKey| Loaded { record: of(&lock), lock };
    (locks.into_iter().map(load).collect(), u64::try_from(now).unwrap_or_default())
}

fn read(row: &Row) -> Result<Record> {
    let expires_at = column::<Option<Moment>>(row, 6, "expires_at")?;
    let columns = Columns {
        kind: column(row, 1, "kind")?,
        owner: column(row, 2, "owner")?,
        holder: column(row, 3, "holder")?,
        token: column(row, 4, "token")?,
        granted_at: column(row, 5, "granted_at")?,
        expires_at: expires_at.map(|moment| signed(moment.0)),
        last_token: column(row, 7, "last_token")?,
        counter_until: column(row, 8, "counter_until")?,
        longest_lease: column(row, 9, "longest_lease")?,
        rest: column(row, 10, "rest")?,
    };
    columns.record()
}

/// Writes records into their rows, all in one flight.
pub(super) async fn store(
    client: &Client,
    statement: &Statement,
    changed: &[(&LockKey, &Record)],
) -> Result<(), tokio_postgres::Error> {
    let write = async |(lock, record): &(&LockKey, &Record)| {
        let written = Written::from(*record);
        client
            .execute(
                statement,
                &[
                    &row_name(lock),
                    &written.kind,
                    &written.holder,
                    &written.token,
                    &written.expires_at.map(Moment),
                    &written.waiting,
                    &written.owner.map(Hidden::owner),
                    &written.granted_at,
                    &written.last_token,
                    &written.counter_until,
                    &written.longest_lease,
                    &written.rest.map(Hidden),
                ],
            )
            .await
    };
    try_join_all(changed.iter().map(write)).await.map(drop)
}

/// A column's value.
pub(super) fn column<'a, T: FromSql<'a>>(row: &'a Row, at: usize, name: &'static str) -> Result<T> {
    row.try_get(at).map_err(|_| bad_column(name))
}
