//! The end of the numbers: tokens and versions stay below 2^53, beyond which not every language tells them apart.

use crate::error::{Code, Error};
use crate::fence::Token;
use crate::port::Failure;

/// The error message for a client that asks for a token when none is left.
pub(crate) const NO_TOKEN_LEFT: &str = "no token is left below 2^53: the store's clock was beyond the year 2255 once; set it right, then delete what the store keeps under this name";

/// Whether a token can be drawn after `last` at `now`.
pub(crate) fn is_left(last: u64, now: u64) -> bool {
    now.max(last.saturating_add(1)) <= Token::MAX.get()
}

/// Nothing was changed.
pub(crate) fn none_left() -> Failure {
    Failure::refused(Error::new(Code::Conflict, NO_TOKEN_LEFT))
}
