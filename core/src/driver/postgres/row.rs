//! How a [`Record`] lies in its row: what people look for in columns, the rest as JSON.

use std::collections::{BTreeMap, VecDeque};

use futures_util::future::try_join_all;
use serde::{Deserialize, Serialize};
use tokio_postgres::types::FromSql;
use tokio_postgres::{Client, Row, Statement};

use super::fault::bad_column;
use super::value::{Hidden, Moment, signed};
use crate::driver::record::{Holder, Record, Ticket};
use crate::driver::recorded::Loaded;
use crate::error::Result;
use crate::fence::Token;
use crate::port::{Failure, Kind, LockKey, Mode, OwnerId};

/// What stands in no column of its own.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Rest {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    holders: Vec<Holder>,
    #[serde(skip_serializing_if = "VecDeque::is_empty")]
    waiters: VecDeque<Ticket>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    tombstones: BTreeMap<OwnerId, u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    open_since: Option<u64>,
}

const KINDS: [(Kind, &str); 3] =
    [(Kind::Mutex, "mutex"), (Kind::ReadWrite, "read-write"), (Kind::Semaphore, "semaphore")];

/// The records of these locks among the rows, and the store's clock. The clock is read behind each row; the last reading counts.
pub(super) fn load(rows: &[Row], locks: Vec<LockKey>) -> (Vec<Loaded>, u64) {
    let of = |lock: &LockKey| {
        let named = |row: &&Row| {
            row.try_get::<_, Option<&str>>(0).is_ok_and(|name| name == Some(lock.as_str()))
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
    let kind = column::<&str>(row, 1, "kind")?;
    let kind =
        KINDS.into_iter().find(|(_, word)| *word == kind).ok_or_else(|| bad_column("kind"))?.0;
    let rest = match column::<Option<&str>>(row, 10, "rest")? {
        None => Rest::default(),
        Some(text) => serde_json::from_str(text).map_err(|_| bad_column("rest"))?,
    };
    let holders = match column::<Option<&str>>(row, 2, "owner")? {
        None => rest.holders,
        Some(_) if kind != Kind::Mutex || !rest.holders.is_empty() => {
            return Err(bad_column("owner"));
        }
        Some(owner) => vec![Holder {
            owner: OwnerId::parse(owner).ok_or_else(|| bad_column("owner"))?,
            mode: Mode::Exclusive,
            upgrading: None,
            turn: 0,
            token: token(row, 4, "token")?,
            since: number(row, 5, "granted_at")?,
            ends: column::<Moment>(row, 6, "expires_at")?.0,
            info: column::<Option<&str>>(row, 3, "holder")?.unwrap_or_default().into(),
        }],
    };
    Ok(Record {
        kind,
        holders,
        last: token(row, 7, "last_token")?,
        counter_until: number(row, 8, "counter_until")?,
        tickets: rest.waiters,
        tombstones: rest.tombstones,
        longest: number(row, 9, "longest_lease")?,
        open_since: rest.open_since,
        // A database is no node of a quorum.
        watchers: VecDeque::new(),
    })
}

/// Writes records into their rows, all in one flight.
pub(super) async fn store(
    client: &Client,
    statement: &Statement,
    changed: &[(&LockKey, &Record)],
) -> Result<(), tokio_postgres::Error> {
    let write = async |(lock, record): &(&LockKey, &Record)| {
        let alone = match (record.kind, &record.holders[..]) {
            (Kind::Mutex, [holder]) => Some(holder),
            _ => None,
        };
        let rest = Rest {
            holders: if alone.is_some() { Vec::new() } else { record.holders.clone() },
            waiters: record.tickets.clone(),
            tombstones: record.tombstones.clone(),
            open_since: record.open_since,
        };
        let rest = (rest != Rest::default()).then(|| {
            Hidden(
                serde_json::to_string(&rest).expect("a record has nothing that JSON cannot hold"),
            )
        });
        let word = KINDS.iter().find(|(kind, _)| *kind == record.kind).map_or("", |(_, word)| word);
        let owner = alone.map(|holder| Hidden::owner(holder.owner));
        let token = record.holders.iter().map(|holder| signed(holder.token)).max();
        let ends = record.holders.iter().map(|holder| Moment(holder.ends));
        let waiting = i32::try_from(record.tickets.len()).unwrap_or(i32::MAX);
        client
            .execute(
                statement,
                &[
                    &lock.as_str(),
                    &word,
                    &record.holder().map(|holder| &*holder.info),
                    &token,
                    &ends.max_by_key(|moment| moment.0),
                    &waiting,
                    &owner,
                    &alone.map(|holder| signed(holder.since)),
                    &signed(record.last),
                    &signed(record.counter_until),
                    &signed(record.longest),
                    &rest,
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

/// A column that is not negative.
pub(super) fn number(row: &Row, at: usize, name: &'static str) -> Result<u64> {
    u64::try_from(column::<i64>(row, at, name)?).map_err(|_| bad_column(name))
}

fn token(row: &Row, at: usize, name: &'static str) -> Result<u64> {
    let in_range = |token: &u64| *token <= Token::MAX.get();
    Some(number(row, at, name)?).filter(in_range).ok_or_else(|| bad_column(name))
}
