//! The rows of one batch: each is read and written once, however many of the steps are of its lock. Thousands may hold it,
//! and their row is as long.

use rusqlite::Connection;

use super::fault::Fault;
use super::row;
use crate::driver::record::Record;
use crate::port::LockKey;

/// The records that were loaded, each as it was and as it is to be.
pub(super) struct Rows<'a> {
    connection: &'a Connection,
    loaded: Vec<(&'a LockKey, Record, Record)>,
}

impl<'a> Rows<'a> {
    /// None yet.
    pub(super) fn of(connection: &'a Connection) -> Self {
        Self { connection, loaded: Vec::new() }
    }

    /// A lock's record, for changes.
    pub(super) fn record(&mut self, lock: &'a LockKey) -> Result<&mut Record, Fault> {
        let known = self.loaded.iter().position(|(known, ..)| *known == lock);
        let at = known.unwrap_or(self.loaded.len());
        if known.is_none() {
            let record = row::load(self.connection, lock)?;
            self.loaded.push((lock, record.clone(), record));
        }
        Ok(&mut self.loaded[at].2)
    }

    /// Writes what has changed.
    pub(super) fn store(&self) -> Result<(), Fault> {
        for (lock, before, record) in &self.loaded {
            if record != before {
                row::store(self.connection, lock, record)?;
            }
        }
        Ok(())
    }
}
