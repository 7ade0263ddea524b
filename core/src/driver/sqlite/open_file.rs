//! An open database with all that goes with it: its turns, the files it works in, and the mark that it is open.

use std::path::Path;

use super::database::{Database, Found};
use super::fault::Fault;
use super::fork::{Mark, mark};
use super::identity::Identity;
use super::log_files::{LogFiles, again, gone};
use super::writer_queue::{Manners, WriterQueue};

/// The file and its turns.
pub(super) struct OpenFile {
    pub(super) database: Database,
    writer_queue: WriterQueue,
    files: LogFiles,
    /// The last one to go.
    _mark: Mark,
}

impl OpenFile {
    /// Opens the file at `path`.
    pub(super) fn of(path: &Path, found: Found) -> Result<Self, Fault> {
        let database = Database::open(path, found)?;
        let writer_queue = WriterQueue::of(database.path());
        let files = LogFiles::of(database.path());
        let mark = mark(database.identity());
        Ok(Self { database, writer_queue, files, _mark: mark })
    }

    /// The file's absolute path, without links.
    pub(super) fn path(&self) -> &Path {
        self.database.path()
    }

    /// Which file it is.
    pub(super) fn identity(&self) -> Identity {
        self.database.identity()
    }

    /// Makes sure that this is still the file it was.
    pub(super) fn check_is(&self, before: Identity) -> Result<(), Fault> {
        self.database.check_is(before)
    }

    /// Whether what is done here reaches nobody else any more. It is to be opened anew then.
    pub(super) fn is_lost(&self) -> bool {
        self.files.are_gone()
    }

    /// Reads what everybody reads.
    pub(super) fn look<T>(
        &self,
        look: impl FnOnce(&Database) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        self.database.check_file()?;
        let seen = look(&self.database)?;
        if self.is_lost() { Err(again()) } else { Ok(seen) }
    }

    /// Writes in due turn, where everybody writes. What was written counts if everybody's log is still the one it was written to.
    pub(super) fn change<T>(
        &mut self,
        manners: Manners,
        mut change: impl FnMut(&mut Database) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        let done = self.end(manners, |database| {
            database.check_file()?;
            change(database)
        })?;
        if self.is_lost() { Err(Fault::Unknown(gone())) } else { Ok(done) }
    }

    /// Writes in due turn what does no harm if it is lost: the end of a hold.
    pub(super) fn end<T>(
        &mut self,
        manners: Manners,
        mut change: impl FnMut(&mut Database) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        let Self { database, writer_queue, .. } = self;
        writer_queue.pass(manners, || change(database))
    }
}

impl Drop for OpenFile {
    fn drop(&mut self) {
        if self.is_lost() {
            self.database.leave_the_log();
        }
    }
}
