//! Worlds about values with versions, scheduled jobs and elections: the same network and the same faults, other promises.

mod actor;
mod checker;
mod history;
mod plan;
mod shelf;
mod shrink;
mod world;

use fencelock::mutation::Mutant;

pub use self::plan::{Family, Mood, Plan};
pub use self::shelf::{Changed, Shelf, lock_of_job};
pub use self::world::run;

/// The clauses that these worlds are about. Those of locks are looked for elsewhere.
pub const MUTANTS: &[Mutant] = &[
    Mutant::SwapWithoutVersionCheck,
    Mutant::BareCounterVersion,
    Mutant::DeletionForgotten,
    Mutant::TrailForgotten,
    Mutant::UnknownSwapBelieved,
    Mutant::BlindRetry,
    Mutant::JobEndsWithoutToken,
    Mutant::JobByAskingTime,
    Mutant::JobByLocalClock,
    Mutant::JobByNearestInstant,
    Mutant::JobTwiceInPeriod,
    Mutant::LateStartBelieved,
    Mutant::DeadRunRetried,
    Mutant::JobOverlaps,
    Mutant::GivenUpRunForgotten,
    Mutant::ObserverGoesByFirstLook,
];
