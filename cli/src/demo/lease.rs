//! How long a hold of the demo lasts, and what follows from that.

use serde::Serialize;

/// The times of a hold, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[expect(
    clippy::struct_field_names,
    reason = "the names say the unit, also in what the demo prints as JSON"
)]
pub(super) struct Lease {
    /// How long a hold lasts that nobody renews.
    pub ttl_ms: u64,
    /// How much later than that the next grant comes at most, when its holder has died.
    pub grace_ms: u64,
    /// How long the store is stalled: so short that its holder can still renew.
    pub stall_ms: u64,
}

impl Default for Lease {
    fn default() -> Self {
        Self { ttl_ms: 2_000, grace_ms: 1_000, stall_ms: 1_200 }
    }
}

impl Lease {
    /// On the store that a client's guarantees name so.
    pub(super) fn on(store: &str) -> Self {
        match store {
            // As ensembles come, they give no shorter session, and end it two ticks later at most. A heartbeat is worth three
            // quarters of a session and is a quarter of it old when the next one is sent.
            "zookeeper" => Self { ttl_ms: 4_000, grace_ms: 5_000, stall_ms: 1_000 },
            _ => Self::default(),
        }
    }
}
