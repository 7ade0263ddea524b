//! The connection between one client and the store.

use std::sync::Arc;

use fencelock::port::{Instant, NoticeSink};
use fencelock_sim::SimNode;

/// One client's way to the store and back.
pub(super) struct Link {
    pub(super) node: Arc<SimNode>,
    pub(super) sink: Option<NoticeSink>,
    pub(super) subscription: Subscription,
    pub(super) path: Path,
    /// Which connection it is: messages of an older one are mostly lost with it.
    pub(super) connection: u64,
    /// How many of the next requests are lost.
    pub(super) losing: u32,
    /// When the last message of each direction arrives, for links that keep the order.
    pub(super) arrivals: [Instant; 3],
}

/// The state of a client's subscription as the server knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Subscription {
    None,
    Live,
    /// The server has not noticed yet that nobody is there any more.
    HalfOpen,
}

/// Whether messages pass between a client and the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Path {
    Open,
    Cut,
    /// For good: the client closed, or its machine is no more.
    Closed,
}

impl std::fmt::Debug for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Link").field("path", &self.path).finish_non_exhaustive()
    }
}

impl Link {
    pub(super) fn break_off(&mut self, unnoticed: bool) {
        let live = self.subscription == Subscription::Live;
        self.subscription =
            if live && unnoticed { Subscription::HalfOpen } else { Subscription::None };
        self.connection += 1;
    }
}
