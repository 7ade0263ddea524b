//! The abilities of a store, and the failures that it survives.

use serde::{Deserialize, Serialize};

/// The abilities of a store, and how long its tokens last.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Capabilities {
    /// The store's name as users know it: `redis`, `sqlite`, `memory`.
    pub store: &'static str,
    /// How far the order of tokens reaches.
    pub fence: Fence,
    /// The thing that a lease on this store belongs to.
    pub life: Life,
    /// Dialects this store speaks beside its own layout.
    pub dialects: &'static [&'static str],
    /// Whether holders that are not fencelock's may stand on the store.
    pub foreign_holders: bool,
    /// Whether a version may lie in a row of a table of the user's own.
    pub own_tables: bool,
    /// Why the store cannot serve waiters of different clients in order, nor count permits, if it cannot.
    pub unordered: Option<&'static str>,
    /// The setup of the store that breaks a promise, if one was found: [`LeaseStore::warning`](super::LeaseStore::warning), for a client.
    pub warning: Option<&'static str>,
    /// The failures that this store and configuration survive, in words.
    pub guarantees: &'static [Guarantee],
}

/// The effect of one kind of failure on the promises.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Guarantee {
    /// The failure.
    pub when: &'static str,
    /// The promises that still hold then, and what covers the rest.
    pub then: &'static str,
}

impl Guarantee {
    /// The same wherever a lease has an end.
    pub(crate) const PAUSED: Self = Self::new(
        "the holder is paused (GC, SIGSTOP, suspend)",
        "after its deadline the guard reports the loss at the first check; the fence refuses a write that is made without a check",
    );

    /// A row.
    pub const fn new(when: &'static str, then: &'static str) -> Self {
        Self { when, then }
    }
}

impl Capabilities {
    /// A store without dialects or foreign holders.
    pub const fn new(store: &'static str, fence: Fence) -> Self {
        Self {
            store,
            fence,
            life: Life::Lease,
            dialects: &[],
            foreign_holders: false,
            own_tables: false,
            unordered: None,
            warning: None,
            guarantees: &[],
        }
    }

    /// The same, with what it survives.
    pub const fn with_guarantees(mut self, guarantees: &'static [Guarantee]) -> Self {
        self.guarantees = guarantees;
        self
    }

    /// The same, for a store whose leases live with a session.
    pub const fn with_sessions(mut self) -> Self {
        self.life = Life::Session;
        self
    }

    /// The same, for a store on which a version may lie in a row of a table of the user's own.
    pub const fn with_own_tables(mut self) -> Self {
        self.own_tables = true;
        self
    }

    /// The same, for a store that serves no waiters in order, and why.
    pub const fn without_order(mut self, why: &'static str) -> Self {
        self.unordered = Some(why);
        self
    }

    /// The same, with foreign holders by these dialects.
    pub const fn with_dialects(mut self, dialects: &'static [&'static str]) -> Self {
        self.dialects = dialects;
        self.foreign_holders = true;
        self
    }
}

/// How far the order of fencing tokens reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Fence {
    /// For as long as the store exists.
    Durable,
    /// As long as the store keeps its data, and beyond that as far as its clock does not step back.
    ClockBounded,
}

/// The thing that a lease belongs to; it decides what renews the lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Life {
    /// To its lock: each lock has a lease of its own, as long as its `ttl`.
    Lease,
    /// To the client's session with the store: all locks of the client live as long as it does.
    Session,
}
