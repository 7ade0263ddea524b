//! Stores around stores.

mod chaos;
mod meter;
#[cfg(all(feature = "tokio", feature = "redis"))]
mod standby;

pub use chaos::{Chaos, Fault};
pub use meter::{Count, Meter};
#[cfg(all(feature = "tokio", feature = "redis"))]
pub(crate) use standby::Standby;
