//! The write-ahead log: how long it is, and writing it back into the file.
//!
//! SQLite by itself would do that inside a commit, before anybody is told of it, and would wait for the disk there. Here
//! it is done beside the steps, by a connection of its own.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering::Relaxed};

use rusqlite::hooks::Wal;
use rusqlite::{Connection, OpenFlags};

use super::description::opening;
use super::fault::Fault;
use super::fork::no_fork;
use super::writer_queue::{Manners, WriterQueue};

/// A log of so many pages (4 MB) is written back, once in some thousand steps. A step adds one page, nearly always the
/// same, and takes longer the more copies of it the log already holds: so it is kept short.
const LONG: i32 = 1000;

/// The log of one connection's database.
pub(super) struct Log {
    path: PathBuf,
    /// Its length after the newest commit of this connection, in pages.
    pages: Arc<AtomicI32>,
    /// From which length on it is written back.
    until: i32,
    under_way: Arc<AtomicBool>,
}

/// Writing a log back: waits for the disk, so it is not for a thread that serves tasks.
pub(super) struct WriteBack {
    path: PathBuf,
    /// The log's length as this connection knows it, and as it was at first.
    pages: Arc<AtomicI32>,
    long: i32,
    under_way: Arc<AtomicBool>,
}

impl Log {
    /// Watches the log of a connection, which from now on leaves it alone.
    pub(super) fn watch(connection: &mut Connection, path: PathBuf) -> rusqlite::Result<Self> {
        let pages = Arc::new(AtomicI32::new(0));
        let told = pages.clone();
        connection.wal_hook(Some(move |_: &mut Wal, pages| {
            told.store(pages, Relaxed);
            Ok(())
        }))?;
        Ok(Self { path, pages, until: LONG, under_way: Arc::default() })
    }

    #[cfg(test)]
    pub(super) fn pages(&self) -> i32 {
        self.pages.load(Relaxed)
    }

    /// The work that the log's length requires, if any.
    pub(super) fn due(&mut self) -> Option<WriteBack> {
        let pages = self.pages.load(Relaxed);
        if pages < LONG {
            self.until = LONG;
        }
        if pages < self.until || self.under_way.swap(true, Relaxed) {
            return None;
        }
        self.until = pages.saturating_add(LONG);
        Some(WriteBack {
            path: self.path.clone(),
            pages: self.pages.clone(),
            long: pages,
            under_way: self.under_way.clone(),
        })
    }
}

impl WriteBack {
    /// Does it.
    pub(super) fn run(self) {
        if let Err(fault) = self.try_run() {
            let error = fault.into_error();
            tracing::debug!(%error, "the log is not written back; a later step tries again");
        }
        self.under_way.store(false, Relaxed);
    }

    fn try_run(&self) -> Result<(), Fault> {
        {
            let (_here, connection) = self.connect()?;
            write_back(&connection, "PASSIVE")?;
        }
        if self.pages.load(Relaxed) <= self.long {
            // The next one to write begins the log anew.
            return Ok(());
        }
        // Somebody writes without a pause: the log would never be found complete, and grow for ever. What was added
        // meanwhile is written back with the writers shut out.
        let (_here, connection) = self.connect()?;
        WriterQueue::of(&self.path).pass(Manners::Patient, || write_back(&connection, "RESTART"))
    }

    /// A connection of its own, and nobody forks before it is closed.
    fn connect(&self) -> Result<(impl Sized, Connection), Fault> {
        let here = no_fork()?;
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let _ours = opening();
        let connection = Connection::open_with_flags(&self.path, flags)?;
        // Whoever ends as the last one here also ends in good order.
        connection.pragma_update(None, "synchronous", "NORMAL")?;
        Ok((here, connection))
    }
}

fn write_back(connection: &Connection, way: &str) -> Result<(), Fault> {
    let statement = format!("PRAGMA wal_checkpoint({way})");
    let busy: bool = connection.query_row(&statement, [], |row| row.get(0))?;
    if busy { Err(Fault::other_turn()) } else { Ok(()) }
}
