//! Failures on the way to a database and at it, as errors of fencelock: the message, whether the call was applied, the next step.

use std::fmt::Display;

pub(in crate::driver) use crate::driver::columns::bad_column;
pub(in crate::driver) use crate::driver::hosts::absent;
use crate::driver::hosts::unanswered;
use crate::error::{Code, Error};
use crate::port::{Applied, Failure};

/// How to go on after a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Nothing was done and the same may be tried at once: another transaction was in the way.
    Again,
    /// A row stayed locked. Nothing was done; who waits here holds up others.
    #[cfg_attr(not(feature = "postgres"), allow(dead_code))]
    // Others have the server wait for a row for so short that they ask again.
    Elsewhere,
    /// The connection cannot be used any more.
    Reconnect,
    /// It stands as it is.
    Keep,
}

/// A statement or transaction that failed.
#[derive(Debug)]
pub struct Fault {
    pub(in crate::driver) failure: Failure,
    pub(in crate::driver) next: Next,
}

impl Fault {
    /// It certainly changed nothing, and the connection is sound.
    pub(in crate::driver) fn refused(error: Error) -> Self {
        Self { failure: Failure::refused(error), next: Next::Keep }
    }

    /// A row went while it was waited for: somebody has deleted it.
    pub(in crate::driver) fn vanished() -> Self {
        let message = "the row of this lock is deleted again and again; stop whatever deletes it";
        let failure = Failure::refused(Error::new(Code::Conflict, message));
        Self { failure, next: Next::Again }
    }
}

/// Why a server takes no writes.
pub(in crate::driver) const READ_ONLY: &str =
    "the server is a read-only replica, or takes no writes from this user; connect to the primary";

/// Says that the server takes no writes.
pub(in crate::driver) fn read_only() -> Error {
    Error::new(Code::Unavailable, READ_ONLY)
}

/// The connection broke, or nobody answered.
pub(in crate::driver) fn lost(server: &impl Display, reason: &str, decides: bool) -> Fault {
    let error = if decides { unanswered(server, reason) } else { absent(server, reason) };
    let applied = if decides { Applied::Unknown } else { Applied::No };
    Fault { failure: Failure { error, applied }, next: Next::Reconnect }
}

/// Whether a server takes no more connections: of all clients, or of this user.
pub(in crate::driver) fn is_full(error: &Error) -> bool {
    let field = |name: &str| error.fields().get(name).map(String::as_str);
    matches!(field("number"), Some("1040" | "1203" | "1226")) || field("sqlstate") == Some("53300")
}
