//! Worlds about values with versions, scheduled jobs and elections: the same network and the same faults, other promises.

mod actor;
mod checker;
mod history;
mod plan;
mod shelf;
mod shrink;
mod world;

pub use self::plan::{Family, Mood, Plan};
pub use self::shelf::{Changed, Shelf, lock_of_job};
pub use self::world::run;
