//! Stores around stores.

mod chaos;
mod meter;

pub use chaos::{Chaos, Fault};
pub use meter::{Count, Meter};
