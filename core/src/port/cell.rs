//! The interface of cells: a value with a version, read and replaced by compare-and-set, and the store's clock.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::failure::Failure;
use super::key::OwnerId;
use super::limits;
use super::marker::{BoxFuture, MaybeSend, MaybeSync};
use crate::error::Result;

/// A cell as the store sees it. Cells of different families never meet, whatever their names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CellKey {
    /// Its purpose.
    pub family: Family,
    /// Its name.
    pub name: Arc<str>,
    /// A table of the user's own whose row it is, with its columns: `account(id, version, balance)`.
    pub table: Option<Arc<str>>,
}

/// The purpose of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Family {
    /// A value of the user's, with its version.
    Version,
    /// The last run of a scheduled job.
    Job,
}

impl Family {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Version, Self::Job];

    /// The word that stands for it in keys.
    #[cfg(any(
        feature = "etcd",
        feature = "host",
        feature = "mysql",
        feature = "postgres",
        feature = "redis",
        feature = "sqlite",
        feature = "zookeeper"
    ))]
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Version => "version",
            Self::Job => "job",
        }
    }
}

impl CellKey {
    /// The cell of this name within its family.
    pub fn new(family: Family, name: impl Into<Arc<str>>) -> Self {
        Self { family, name: name.into(), table: None }
    }
}

/// Which state of a cell this is: a positive integer under 2^53 that rises with every change, a deletion included.
///
/// It follows the rule of tokens, max(last + 1, the store's clock in µs), so it does not repeat after the cell was
/// forgotten, or the store has lost its data, as far as that clock does not step back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Version(u64);

impl Version {
    /// A version from its number.
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// The number.
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// One change of a cell, as its trail remembers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// The version it made.
    pub version: Version,
    /// The writer that made it.
    pub writer: OwnerId,
}

/// A cell as it lies on the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cell {
    /// Its value; `None` if it was deleted, which is remembered for a while.
    pub value: Option<Arc<str>>,
    /// When it was changed last, in µs of the store's clock.
    pub since: u64,
    /// Its newest changes, newest first: at least one, at most `limits::TRAIL`.
    pub trail: Vec<Mark>,
}

impl Cell {
    /// The present version.
    pub fn version(&self) -> Version {
        self.trail.first().map_or(Version(0), |mark| mark.version)
    }

    /// The result of a change that expected `expected`, by this writer: the version it made, or `None` if it was not
    /// carried out and never will be; an error if too much has happened since to tell.
    pub fn fate(
        &self,
        expected: Option<Version>,
        writer: OwnerId,
    ) -> Result<Option<Version>, Untold> {
        let newer = |mark: &&Mark| Some(mark.version) > expected;
        if let Some(mark) = self.trail.iter().filter(newer).find(|mark| mark.writer == writer) {
            return Ok(Some(mark.version));
        }
        // Whether the trail goes back to what the change expected.
        let complete = match expected {
            None => self.trail.len() < limits::TRAIL,
            Some(_) => self.trail.iter().any(|mark| Some(mark.version) <= expected),
        };
        if complete { Ok(None) } else { Err(Untold) }
    }
}

/// The trail does not go back far enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Untold;

/// The result of a look at a cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Look {
    /// The cell; `None` if there is nothing, not even the memory of a deletion.
    pub cell: Option<Cell>,
    /// The store's clock at that moment, in µs since 1970.
    pub clock: u64,
}

impl Look {
    /// The version that a change of this state has to expect.
    pub fn version(&self) -> Option<Version> {
        self.cell.as_ref().map(Cell::version)
    }

    /// The value, if there is one.
    pub fn value(&self) -> Option<&str> {
        self.cell.as_ref()?.value.as_deref()
    }
}

/// A change that is carried out only if nobody was faster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The cell.
    pub key: CellKey,
    /// The version it must have; `None`: there must be nothing.
    pub expected: Option<Version>,
    /// The writer of the change: by this the trail shows whether a change whose answer was lost has been carried out.
    pub writer: OwnerId,
    /// The new value; `None` deletes.
    pub value: Option<Arc<str>>,
    /// How long it is kept; `None`: for ever.
    pub keep: Option<Duration>,
}

impl Change {
    /// How long the store remembers what it then has; `None`: for ever. A late copy of an earlier change must find
    /// something there, so that it is refused.
    pub fn life(&self) -> Option<Duration> {
        match (&self.value, self.keep) {
            (Some(_), None) => None,
            (_, keep) => Some(keep.unwrap_or_default().max(limits::TOMBSTONE_LIFE)),
        }
    }
}

/// How a compare-and-set was answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Swap {
    /// Carried out.
    Done {
        /// The version it made.
        version: Version,
        /// When, in µs of the store's clock.
        since: u64,
    },
    /// Not carried out: this is what lies there instead.
    Other(Look),
}

/// A store of cells.
///
/// The model, `driver::cell`, defines the meaning of each call; every driver is tested against it.
pub trait CellStore: MaybeSend + MaybeSync + 'static {
    /// Reads the cell and the store's clock.
    /// A job needs both of one moment, and a call for the clock alone would cost a round trip.
    fn read(&self, key: &CellKey) -> impl Future<Output = Result<Look>> + MaybeSend;

    /// Replaces the value if the version is the one expected, in one step. A change is never sent twice by the driver,
    /// unless it certainly was not carried out. Dropping the future recalls nothing that has been sent.
    fn compare_and_set(
        &self,
        change: &Change,
    ) -> impl Future<Output = Result<Swap, Failure>> + MaybeSend;
}

/// The dyn twin of [`CellStore`].
trait DynCellStore: MaybeSend + MaybeSync {
    fn read<'a>(&'a self, key: &'a CellKey) -> BoxFuture<'a, Result<Look>>;
    fn compare_and_set<'a>(&'a self, change: &'a Change) -> BoxFuture<'a, Result<Swap, Failure>>;
}

impl<S: CellStore> DynCellStore for S {
    fn read<'a>(&'a self, key: &'a CellKey) -> BoxFuture<'a, Result<Look>> {
        Box::pin(CellStore::read(self, key))
    }
    fn compare_and_set<'a>(&'a self, change: &'a Change) -> BoxFuture<'a, Result<Swap, Failure>> {
        Box::pin(CellStore::compare_and_set(self, change))
    }
}

/// The cells of a store of any kind. See [`CellStore`] for what each call promises.
#[derive(Clone, Copy)]
pub struct Cells<'a>(&'a dyn DynCellStore);

impl<'a> Cells<'a> {
    /// Those of this store.
    pub fn of(store: &'a impl CellStore) -> Self {
        Self(store)
    }

    /// [`CellStore::read`].
    pub async fn read(self, key: &CellKey) -> Result<Look> {
        self.0.read(key).await
    }

    /// [`CellStore::compare_and_set`].
    pub async fn compare_and_set(self, change: &Change) -> Result<Swap, Failure> {
        self.0.compare_and_set(change).await
    }
}

impl fmt::Debug for Cells<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Cells")
    }
}
