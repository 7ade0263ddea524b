//! The files beside the database that SQLite works in: the log and its index. Whoever deletes one of them under an open
//! connection parts it from all others: each side grants the same locks. SQLite deletes them when it believes to be the last
//! one; people do it by mistake.

use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};

use super::fault::Fault;
use crate::error::{Code, Error};

/// The two files, as they were when the database was opened.
pub(super) struct LogFiles([Option<File>; 2]);

impl LogFiles {
    /// Those of a database whose connection is open.
    pub(super) fn of(database: &Path) -> Self {
        let open = |end| {
            let mut options = OpenOptions::new();
            marked_only(options.read(true)).open(beside(database, end)).ok()
        };
        // A file that is really open would drop locks of this process when it is closed.
        let index = if cfg!(target_os = "linux") { open("-shm") } else { None };
        // Windows deletes neither while SQLite has it open.
        Self([if cfg!(unix) { open("-wal") } else { None }, index])
    }

    /// Whether they have been deleted. (Nobody renames them.)
    pub(super) fn are_gone(&self) -> bool {
        self.0.iter().flatten().any(is_gone)
    }
}

#[cfg(unix)]
fn is_gone(file: &File) -> bool {
    rustix::fs::fstat(file).is_ok_and(|found| found.st_nlink == 0)
}

#[cfg(windows)]
fn is_gone(_: &File) -> bool {
    false
}

/// A handle that shows which file it is, and no more.
#[cfg(target_os = "linux")]
fn marked_only(options: &mut OpenOptions) -> &mut OpenOptions {
    use std::os::unix::fs::OpenOptionsExt;
    options.custom_flags(libc::O_PATH)
}

#[cfg(not(target_os = "linux"))]
fn marked_only(options: &mut OpenOptions) -> &mut OpenOptions {
    options
}

/// The path of a file beside the database.
pub(super) fn beside(database: &Path, end: &str) -> PathBuf {
    let mut path = database.as_os_str().to_owned();
    path.push(end);
    path.into()
}

/// The error for what was done in files that were deleted meanwhile.
pub(super) fn gone() -> Error {
    Error::new(
        Code::Unavailable,
        "the database's log was deleted while it was open, and the newest changes with it; no program may delete `-wal` or `-shm`, \
         and no other SQLite may open the file in this process",
    )
}

/// The fault for a read whose result was not the truth: it is read again, in new files.
pub(super) fn again() -> Fault {
    Fault::Busy(gone())
}
