//! How a [`Record`] lies in its row: what people look for in columns, the rest as JSON.

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};

use super::fault::bad_column;
use super::signed;
use crate::driver::record::{Holder, Record, Ticket};
use crate::error::Result;
use crate::fence::Token;
use crate::port::{Kind, Mode, OwnerId};

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

/// The columns a record is read from. Moments are µs since 1970.
pub(in crate::driver) struct Columns<'a> {
    pub(in crate::driver) kind: &'a str,
    pub(in crate::driver) owner: Option<&'a str>,
    pub(in crate::driver) holder: Option<&'a str>,
    pub(in crate::driver) token: Option<i64>,
    pub(in crate::driver) granted_at: Option<i64>,
    pub(in crate::driver) expires_at: Option<i64>,
    pub(in crate::driver) last_token: i64,
    pub(in crate::driver) counter_until: i64,
    pub(in crate::driver) longest_lease: i64,
    pub(in crate::driver) rest: Option<&'a str>,
}

impl Columns<'_> {
    /// The record that the columns hold.
    pub(in crate::driver) fn record(self) -> Result<Record> {
        let named = |(_, word): &(Kind, &str)| *word == self.kind;
        let kind = KINDS.into_iter().find(named).ok_or_else(|| bad_column("kind"))?.0;
        let rest = match self.rest {
            None => Rest::default(),
            Some(text) => serde_json::from_str(text).map_err(|_| bad_column("rest"))?,
        };
        let holders = match self.owner {
            None => rest.holders,
            Some(_) if kind != Kind::Mutex || !rest.holders.is_empty() => {
                return Err(bad_column("owner"));
            }
            Some(owner) => vec![Holder {
                owner: OwnerId::parse(owner).ok_or_else(|| bad_column("owner"))?,
                mode: Mode::Exclusive,
                token: token(self.token, "token")?,
                since: number(self.granted_at, "granted_at")?,
                ends: number(self.expires_at, "expires_at")?,
                permits: 1,
                info: self.holder.unwrap_or_default().into(),
            }],
        };
        Ok(Record {
            kind,
            holders,
            last: token(Some(self.last_token), "last_token")?,
            counter_until: number(Some(self.counter_until), "counter_until")?,
            tickets: rest.waiters,
            tombstones: rest.tombstones,
            longest: number(Some(self.longest_lease), "longest_lease")?,
            open_since: rest.open_since,
        })
    }
}

/// The columns a record is written to.
pub(in crate::driver) struct Written<'a> {
    pub(in crate::driver) kind: &'static str,
    pub(in crate::driver) holder: Option<&'a str>,
    pub(in crate::driver) token: Option<i64>,
    pub(in crate::driver) expires_at: Option<u64>,
    pub(in crate::driver) waiting: i32,
    pub(in crate::driver) owner: Option<OwnerId>,
    pub(in crate::driver) granted_at: Option<i64>,
    pub(in crate::driver) last_token: i64,
    pub(in crate::driver) counter_until: i64,
    pub(in crate::driver) longest_lease: i64,
    pub(in crate::driver) rest: Option<String>,
}

impl<'a> From<&'a Record> for Written<'a> {
    fn from(record: &'a Record) -> Self {
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
        Self {
            kind: word,
            holder: record.holder().map(|holder| &*holder.info),
            token: record.holders.iter().map(|holder| signed(holder.token)).max(),
            expires_at: record.holders.iter().map(|holder| holder.ends).max(),
            waiting: i32::try_from(record.tickets.len()).unwrap_or(i32::MAX),
            owner: alone.map(|holder| holder.owner),
            granted_at: alone.map(|holder| signed(holder.since)),
            last_token: signed(record.last),
            counter_until: signed(record.counter_until),
            longest_lease: signed(record.longest),
            rest: (rest != Rest::default()).then(packed),
        }
    }
}

/// A column that is there and not negative.
pub(in crate::driver) fn number(value: Option<i64>, name: &'static str) -> Result<u64> {
    value.and_then(|value| u64::try_from(value).ok()).ok_or_else(|| bad_column(name))
}

fn token(value: Option<i64>, name: &'static str) -> Result<u64> {
    let in_range = |token: &u64| *token <= Token::MAX.get();
    Some(number(value, name)?).filter(in_range).ok_or_else(|| bad_column(name))
}
