//! Stores around stores.

mod chaos;
mod meter;
mod resident;
#[cfg(all(feature = "tokio", feature = "redis"))]
mod standby;

pub use chaos::{Chaos, Fault};
pub use meter::{Count, Meter};
pub(crate) use resident::Resident;
#[cfg(all(feature = "tokio", feature = "redis"))]
pub(crate) use standby::Standby;
