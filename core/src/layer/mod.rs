//! Stores around stores.

mod resident;
#[cfg(all(feature = "tokio", feature = "redis"))]
mod standby;

pub(crate) use resident::Resident;
#[cfg(all(feature = "tokio", feature = "redis"))]
pub(crate) use standby::Standby;
