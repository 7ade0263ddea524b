//! Failures of SQLite, as the errors that users read.

use rusqlite::ErrorCode;

use crate::error::{Code, Error};
use crate::port::Failure;

/// Why an attempt on the file came to nothing.
#[derive(Debug)]
pub(super) struct Fault {
    pub(super) kind: FaultKind,
    pub(super) error: Error,
}

/// The state that a fault leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FaultKind {
    /// Another connection has what is needed just now. Nothing was changed; the error is for when time runs out.
    Busy,
    /// The row under one lock's name is no such lock. The other locks are not concerned.
    Row,
    /// Nothing was changed, and trying again now is no use.
    Failed,
    /// The commit failed, and whether it counts is not known.
    Unknown,
}

impl Fault {
    /// The same as the answer to a step.
    pub(super) fn into_failure(self) -> Failure {
        match self.kind {
            FaultKind::Unknown => Failure::unknown(self.error),
            _ => Failure::refused(self.error),
        }
    }

    /// The same, with a fact added to its error.
    pub(super) fn with(self, field: &'static str, value: &str) -> Self {
        Self { error: self.error.with(field, value), ..self }
    }

    /// A row that cannot be read.
    pub(super) fn row(error: Error) -> Self {
        Self { kind: FaultKind::Row, error }
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Self { kind: FaultKind::Failed, error }
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
            return Error::internal(message).with_source(error).into();
        };
        let (code, message) = meaning(said.code);
        let kind = match said.code {
            ErrorCode::DatabaseBusy
            | ErrorCode::DatabaseLocked
            | ErrorCode::FileLockingProtocolFailed => FaultKind::Busy,
            _ => FaultKind::Failed,
        };
        let shown = Error::new(code, message).with("sqlite", error.to_string());
        Self { kind, error: shown.with_source(error) }
    }
}

/// The code and the advice that belong to an error of SQLite.
fn meaning(said: ErrorCode) -> (Code, &'static str) {
    match said {
        ErrorCode::DatabaseBusy
        | ErrorCode::DatabaseLocked
        | ErrorCode::FileLockingProtocolFailed => (
            Code::Unavailable,
            "the database is locked by another writer, which may be a stopped process or another program; see who has the file open",
        ),
        ErrorCode::NotADatabase => {
            (Code::Invalid, "the file is not a SQLite database; give the path of another file")
        }
        ErrorCode::DatabaseCorrupt => (
            Code::Conflict,
            "the database is damaged; delete it while nobody holds a lock, and fencelock makes a new one",
        ),
        ErrorCode::CannotOpen | ErrorCode::PermissionDenied | ErrorCode::ReadOnly => (
            Code::Auth,
            "this user may not write the file, or make its -wal and -shm beside it; check the rights of file and directory",
        ),
        ErrorCode::DiskFull => (Code::Unavailable, "the disk is full; free some space"),
        ErrorCode::SystemIoFailure => (Code::Unavailable, NEEDS_LOCAL_DISK),
        ErrorCode::Unknown | ErrorCode::SchemaChanged | ErrorCode::ConstraintViolation => (
            Code::Conflict,
            "the file's tables are not as fencelock made them; delete the file while nobody holds a lock",
        ),
        _ => (
            Code::Unavailable,
            "SQLite could not carry the step out; see `sqlite` for why, and try again",
        ),
    }
}

/// Said where SQLite does not say which of the two it is.
pub(super) const NEEDS_LOCAL_DISK: &str = "the disk answered with an error, or the file system offers no shared memory or file locks; \
     keep the file on a local disk, not on a network share, and look at the system's log";
