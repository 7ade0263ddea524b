//! What lies on a store, for people who look.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::mode::{Kind, Mode};
use crate::fence::Token;

/// A lock as it lies on the store. As JSON its times are milliseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    /// What the lock is in use as.
    pub kind: Kind,
    /// The present holders, in the order of their tokens.
    pub holders: Vec<HolderView>,
    /// The lock's counter: the newest token drawn.
    pub last: Token,
    /// The queue, head first.
    pub waiters: Vec<WaiterView>,
}

/// A holder, for people who look.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HolderView {
    /// How it holds.
    pub mode: Mode,
    /// Its token; `None` for a holder that is not fencelock's.
    pub token: Option<Token>,
    /// What is left of its lease; `None` if it has no end.
    #[serde(with = "super::millis::optional")]
    pub left: Option<Duration>,
    /// How long it has held; `None` if the store does not know.
    #[serde(with = "super::millis::optional")]
    pub held_for: Option<Duration>,
    /// What it said of itself, as JSON; empty for a foreign holder.
    pub info: Arc<str>,
}

/// A waiter, for people who look.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaiterView {
    /// How it wants to hold.
    pub mode: Mode,
    /// What it said of itself, as JSON.
    pub info: Arc<str>,
    /// How long it has been in the queue.
    #[serde(with = "super::millis")]
    pub waiting_for: Duration,
}
