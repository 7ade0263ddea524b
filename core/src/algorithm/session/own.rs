//! An attempt or a hold of this client.

use std::time::Duration;

use super::live::Id;
use crate::fence::Token;
use crate::port::{Instant, LockKey, Mode};

/// See the module.
pub(super) struct Own {
    pub(super) lock: LockKey,
    pub(super) mode: Mode,
    pub(super) stage: Stage,
    /// In which session; `None` until it has one.
    pub(super) session: Option<Id>,
    /// It is not wanted any more.
    pub(super) leaves: bool,
    /// When the newest step arrived that was answered "still waiting": a push counts from there.
    pub(super) base: Instant,
    /// The lease wanted, and until when it was wanted.
    pub(super) ttl: Duration,
    pub(super) ends: Instant,
    pub(super) token: Token,
    /// How many tokens it draws.
    pub(super) drawn: u32,
}

/// Where it is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// It is asked for.
    Asking,
    Waiting,
    Holding,
    /// It is being given back.
    Leaving,
}
