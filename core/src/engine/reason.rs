//! Why whoever waits does not have the lock yet: what they are told when their wait ends.

use super::who_holds::with_holders;
use crate::error::{Code, Error};
use crate::fence::Token;
use crate::port::HolderView;

/// See the module.
#[derive(Clone, Debug, Default)]
pub(crate) enum Reason {
    /// The store has not answered yet.
    #[default]
    Unanswered,
    /// Somebody else has it: the store said so, or it is held in this client.
    Held,
    /// The store refuses, does not answer, or answers too late.
    Trouble(Box<Error>),
}

impl Reason {
    pub(crate) fn trouble(&self) -> Option<&Error> {
        match self {
            Self::Trouble(error) => Some(error),
            Self::Unanswered | Self::Held => None,
        }
    }

    /// The error of a wait that ends now, with these holders.
    pub(crate) fn into_error(self, holders: &[HolderView]) -> Error {
        let error = match self {
            Self::Trouble(error) => return *error,
            Self::Unanswered => Error::new(
                Code::Timeout,
                "the lock was not granted within the wait; the store has not answered yet: wait longer, or look at the store",
            ),
            Self::Held => Error::held(
                "the lock was not granted within the wait; it is held by somebody else: wait longer, or try again later",
            ),
        };
        with_holders(error, holders)
    }
}

/// A grant arrived when nothing was left of it.
pub(crate) fn too_late() -> Error {
    let message = "the store's answer came after the lease had ended, so nothing is held; raise `ttl` or look at the store";
    Error::new(Code::Unavailable, message)
}

/// The store granted with a token below one that was seen: it has lost its data, and its clock shows less than when that was
/// drawn.
pub(super) fn behind(token: Token, seen: Token) -> Error {
    let message = "the store has lost its data and its clock has stepped back, so its tokens are older than those it gave before; nothing is held: set its clock right, or wait until it has passed them";
    Error::new(Code::Unavailable, message)
        .with("token", token.to_string())
        .with("seen", seen.to_string())
}
