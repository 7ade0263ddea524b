//! How fencelock is known to work: the simulator's worlds, the conformance engine, and the real servers they run on.

pub mod equivalence;
pub mod peer;
pub mod servers;
