//! The writer queue: who wants the file and cannot have it stands in it, and who has had the file for a while asks there
//! before going on.
//!
//! SQLite alone starves those who come second. To begin, a connection reads the newest state and then needs that nobody
//! has committed since; a writer that goes on without a pause leaves no gap for both. The writer queue is a file lock
//! (`flock`, on the log, which SQLite itself never locks). It is a courtesy only: exclusion is SQLite's own, and whoever
//! has waited for long goes past it, since it may be a stopped process that stands there.

use std::fs::{File, TryLockError};
use std::path::Path;

use super::fault::Fault;
use super::log_files::beside;

/// Transactions in a row for which nobody is asked: some 50 µs.
const RUN: u32 = 4;
/// Attempts made while standing in the writer queue: those before have at most a run to finish.
const ATTEMPTS: u32 = 32;

/// How much an attempt regards others who want the file.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Manners {
    /// The first attempt of an operation.
    Brisk,
    /// A later one, which waits its turn.
    Patient,
    /// It has waited for long.
    Pushy,
}

/// The writer queue of one database, as one client sees it.
pub(super) struct WriterQueue {
    file: Option<File>,
    run: u32,
}

/// A turn, over when dropped.
struct WriterTurn<'a>(Option<&'a File>);

impl WriterQueue {
    /// That of the database whose connection is open. Where the log cannot be opened there are no turns.
    pub(super) fn of(database: &Path) -> Self {
        Self { file: File::open(beside(database, "-wal")).ok(), run: 0 }
    }

    /// Attempts something in due turn.
    pub(super) fn pass<T>(
        &mut self,
        manners: Manners,
        mut attempt: impl FnMut() -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        match manners {
            Manners::Brisk => {
                self.run += 1;
                if self.run.is_multiple_of(RUN) {
                    drop(self.enter()?);
                }
                attempt()
            }
            Manners::Patient => {
                let _turn = self.enter()?;
                for _ in 1..ATTEMPTS {
                    match attempt() {
                        Err(Fault::Busy(_)) => std::thread::yield_now(),
                        other => return other,
                    }
                }
                attempt()
            }
            Manners::Pushy => attempt(),
        }
    }

    fn enter(&self) -> Result<WriterTurn<'_>, Fault> {
        let Some(file) = &self.file else { return Ok(WriterTurn(None)) };
        match file.try_lock() {
            Ok(()) => Ok(WriterTurn(Some(file))),
            Err(TryLockError::WouldBlock) => Err(Fault::other_turn()),
            // Where the file system has no such locks.
            Err(TryLockError::Error(_)) => Ok(WriterTurn(None)),
        }
    }
}

impl Drop for WriterTurn<'_> {
    fn drop(&mut self) {
        if let Some(file) = self.0 {
            // It fails only for what is not open; and then nothing is locked.
            let _ = file.unlock();
        }
    }
}
