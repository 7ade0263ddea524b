//! Failures of SQLite, as the errors that users read.

use rusqlite::{ErrorCode, ffi};

use crate::error::{Code, Error};
use crate::port::Failure;

/// Why an attempt on the file came to nothing.
#[derive(Debug)]
pub(super) enum Fault {
    /// Another connection has what is needed just now. Nothing was changed; the error is for when time runs out.
    Busy(Error),
    /// The row under one lock's name is no such lock. The other locks are not concerned.
    Row(Error),
    /// Nothing was changed, and trying again now is no use.
    Failed(Error),
    /// The commit failed, and whether it counts is not known.
    Unknown(Error),
}

impl Fault {
    /// The error to show.
    pub(super) fn into_error(self) -> Error {
        match self {
            Self::Busy(error) | Self::Row(error) | Self::Failed(error) | Self::Unknown(error) => {
                error
            }
        }
    }

    /// The same as the answer to a step.
    pub(super) fn into_failure(self) -> Failure {
        match self {
            Self::Unknown(error) => Failure::unknown(error),
            other => Failure::refused(other.into_error()),
        }
    }

    /// The same, with a fact added to its error.
    pub(super) fn with(self, field: &'static str, value: &str) -> Self {
        match self {
            Self::Busy(error) => Self::Busy(error.with(field, value)),
            Self::Row(error) => Self::Row(error.with(field, value)),
            Self::Failed(error) => Self::Failed(error.with(field, value)),
            Self::Unknown(error) => Self::Unknown(error.with(field, value)),
        }
    }

    /// It is another client's turn.
    pub(super) fn other_turn() -> Self {
        Self::Busy(Error::new(Code::Unavailable, LOCKED))
    }

    /// A row whose column `column` cannot be read.
    pub(super) fn column(column: &str) -> Self {
        let message = "the row of this lock is not one fencelock wrote; look at it, then delete it while nobody holds it";
        Self::Row(Error::new(Code::Conflict, message).with("column", column))
    }
}

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Self {
        let said = match &error {
            rusqlite::Error::SqlInputError { error, .. } => Some(*error),
            error => error.sqlite_error().copied(),
        };
        let Some(said) = said else {
            let message = "SQLite answered in a form fencelock does not expect";
            return Self::Failed(Error::internal(message).with_source(error));
        };
        let (code, message) = meaning(said);
        let busy = matches!(
            said.code,
            ErrorCode::DatabaseBusy
                | ErrorCode::DatabaseLocked
                | ErrorCode::FileLockingProtocolFailed
        );
        let shown = Error::new(code, message).with("sqlite", error.to_string()).with_source(error);
        if busy { Self::Busy(shown) } else { Self::Failed(shown) }
    }
}

/// The code and the advice that belong to an error of SQLite.
fn meaning(said: ffi::Error) -> (Code, &'static str) {
    if is_about_shared_memory(said.extended_code) {
        return (Code::Unsupported, NEEDS_LOCAL_DISK);
    }
    match said.code {
        ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => (Code::Unavailable, LOCKED),
        ErrorCode::FileLockingProtocolFailed => (Code::Unavailable, NEEDS_LOCAL_DISK),
        ErrorCode::NotADatabase => {
            (Code::Invalid, "the file is not a SQLite database; give the path of another file")
        }
        ErrorCode::DatabaseCorrupt => (
            Code::Conflict,
            "the database is damaged; restore it, or let fencelock make a new file",
        ),
        ErrorCode::CannotOpen | ErrorCode::PermissionDenied | ErrorCode::ReadOnly => (
            Code::Auth,
            "this user may not write the file, or make its -wal and -shm beside it; check the rights of file and directory",
        ),
        ErrorCode::DiskFull => (Code::Unavailable, "the disk is full; free some space"),
        ErrorCode::SystemIoFailure => {
            (Code::Unavailable, "the disk answered with an error; look at the system's log")
        }
        ErrorCode::Unknown | ErrorCode::SchemaChanged | ErrorCode::ConstraintViolation => (
            Code::Conflict,
            "the file's fencelock tables are not as fencelock made them; drop them while nobody holds a lock",
        ),
        _ => (
            Code::Unavailable,
            "SQLite could not carry the step out; see `sqlite` for why, and try again",
        ),
    }
}

const LOCKED: &str = "the database is locked by another writer; keep the transactions of other programs on this file short";

pub(super) const NEEDS_LOCAL_DISK: &str = "the file system offers no shared memory or file locks, which SQLite's write-ahead log needs; \
     keep the file on a local disk, not on a network share";

fn is_about_shared_memory(extended: i32) -> bool {
    matches!(
        extended,
        ffi::SQLITE_IOERR_SHMOPEN
            | ffi::SQLITE_IOERR_SHMSIZE
            | ffi::SQLITE_IOERR_SHMLOCK
            | ffi::SQLITE_IOERR_SHMMAP
            | ffi::SQLITE_IOERR_LOCK
    )
}
