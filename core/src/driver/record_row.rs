//! How a [`Record`] lies in its row: what people look for in columns, the rest as JSON.

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};

use super::columns::{Row, Value, bad_column, column, name, number, signed};
#[cfg(any(feature = "mysql", feature = "postgres"))]
use super::sql::foreign::row_name;
use crate::driver::record::{Holder, Record, Ticket};
use crate::error::Result;
use crate::fence::Token;
use crate::port::{Kind, LockKey, Mode, OwnerId};

/// The parts of a record that have no column of their own.
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

/// The column that stands behind those of a record.
#[cfg(feature = "mysql")]
pub(in crate::driver) const BESIDE: usize = 11;

/// The record that a row holds. Moments are µs since 1970.
pub(in crate::driver) fn read(row: &Row) -> Result<Record> {
    let number = |at, name| number(column(row, at, name)?, name);
    let token = |at, name| {
        let in_range = |token: &u64| *token <= Token::MAX.get();
        Some(number(at, name)?).filter(in_range).ok_or_else(|| bad_column(name))
    };
    let word = column::<&str>(row, 1, "kind")?;
    let named = KINDS.into_iter().find(|(_, known)| *known == word);
    let (kind, _) = named.ok_or_else(|| bad_column("kind"))?;
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
            token: token(4, "token")?,
            since: number(5, "granted_at")?,
            ends: number(6, "expires_at")?,
            permits: 1,
            info: column::<Option<&str>>(row, 3, "holder")?.unwrap_or_default().into(),
        }],
    };
    Ok(Record {
        kind,
        holders,
        last: token(7, "last_token")?,
        counter_until: number(8, "counter_until")?,
        tickets: rest.waiters,
        tombstones: rest.tombstones,
        longest: number(9, "longest_lease")?,
        open_since: rest.open_since,
    })
}

/// Other libraries' locks have names of their own in databases only.
#[cfg(not(any(feature = "mysql", feature = "postgres")))]
fn row_name(lock: &LockKey) -> &str {
    lock.as_str()
}

/// The values that have a row hold this record, its name first.
pub(in crate::driver) fn values(lock: &LockKey, record: &Record) -> Vec<Value> {
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
    let packed =
        || serde_json::to_string(&rest).expect("a record has nothing that JSON cannot hold");
    let word = KINDS.iter().find(|(kind, _)| *kind == record.kind).map_or("", |(_, word)| word);
    let newest = |of: fn(&Holder) -> u64| record.holders.iter().map(of).max().map(signed);
    vec![
        name(row_name(lock)),
        word.into(),
        record.holder().map(|holder| &*holder.info).into(),
        newest(|holder| holder.token).into(),
        newest(|holder| holder.ends).into(),
        i64::try_from(record.tickets.len()).unwrap_or(i64::MAX).into(),
        alone.map(|holder| holder.owner.to_string()).into(),
        alone.map(|holder| signed(holder.since)).into(),
        signed(record.last).into(),
        signed(record.counter_until).into(),
        signed(record.longest).into(),
        (rest != Rest::default()).then(packed).into(),
    ]
}
