//! The core as programs use it, over the store in memory, in virtual and in real time.
#![allow(missing_docs)]

/// A test for each world: it keeps what it promises, in many orders.
#[cfg(feature = "test-hooks")]
macro_rules! holds {
    ($world:ident: $($name:ident: $work:expr,)+) => {
        $(
            #[test]
            fn $name() {
                holds(|$world| Box::pin($work));
            }
        )+
    };
}

mod blocking;
mod cells;
mod clauses;
#[cfg(feature = "test-hooks")]
#[path = "../entries/mod.rs"]
mod entries;
mod facade;
mod facade_ends;
mod handover;
mod hold;
mod kinds;
mod late;
mod leases;
#[cfg(feature = "test-hooks")]
#[path = "../machine/mod.rs"]
mod machine;
mod memory;
mod queue;
mod quorum;
mod quorum_contention;
mod quorum_late;
mod quorum_scenarios;
mod roundtrips;
mod runs;
mod schedule;
mod sessions;
#[cfg(feature = "test-hooks")]
#[path = "../wire/mod.rs"]
mod wire;
mod with;
#[cfg(feature = "test-hooks")]
#[path = "../world/mod.rs"]
mod world;
