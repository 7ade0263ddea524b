//! The state of a lock on a store, for people who look.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::key::OwnerId;
use super::mode::{Kind, Mode};
use crate::fence::Token;

/// A lock as it lies on the store. As JSON its times are milliseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct LockState {
    /// The kind that the lock is in use as.
    pub kind: Kind,
    /// The present holders, in the order of their tokens.
    pub holders: Vec<HolderView>,
    /// The lock's counter: the newest token drawn.
    pub last: Token,
    /// The queue, head first, then the waiters inside the client that looks. Those inside other clients are not on the store.
    pub waiters: Vec<WaiterView>,
}

/// A holder, for people who look.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct HolderView {
    /// How it holds.
    pub mode: Mode,
    /// Its token; `None` for a holder that is not fencelock's.
    pub token: Option<Token>,
    /// The time left of its lease; `None` if it has no end.
    #[serde(with = "super::millis::optional")]
    pub left: Option<Duration>,
    /// How long it has held; `None` if the store does not know.
    #[serde(with = "super::millis::optional")]
    pub held_for: Option<Duration>,
    /// The information it gave about itself, as JSON; empty for a foreign holder.
    pub info: Arc<str>,
    /// The owner id that [`Action::Break`](super::Action::Break) ends it by. `None` for a holder that is not fencelock's, and where a
    /// server's session holds. Whoever has it can release the lock, so it is never shown.
    #[serde(skip)]
    pub owner: Option<OwnerId>,
}

/// A waiter, for people who look.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct WaiterView {
    /// How it wants to hold.
    pub mode: Mode,
    /// The information it gave about itself, as JSON.
    pub info: Arc<str>,
    /// How long it has been in the queue.
    #[serde(with = "super::millis")]
    pub waiting_for: Duration,
}

/// Whether a character of a text that others wrote is not to be shown as it is: control characters (C0, C1), separators of lines
/// and paragraphs, controls of direction, and whatever else Unicode has programs ignore, so that two names that differ look the
/// same.
///
/// ```
/// use fencelock::port::is_hidden;
/// assert!(is_hidden('\u{1b}') && is_hidden('\u{202e}') && !is_hidden('ß'));
/// ```
pub fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}')
}
