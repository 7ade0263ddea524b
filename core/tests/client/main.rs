//! The core as programs use it, over the store in memory, in virtual and in real time.
#![allow(missing_docs)]

mod blocking;
mod cells;
mod clauses;
#[cfg(all(feature = "test-hooks", feature = "mutants"))]
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
#[cfg(all(feature = "test-hooks", feature = "mutants"))]
#[path = "../wire/mod.rs"]
mod wire;
mod with;
#[cfg(all(feature = "test-hooks", feature = "mutants"))]
#[path = "../world/mod.rs"]
mod world;
