//! Stores. One folder (or file) per store, each with its steps and dialects; a store line is all another one adds here.

pub mod cell;
pub mod memory;
pub(crate) mod numbers;
pub mod queue;
pub mod record;
#[cfg(any(feature = "redis", feature = "host"))]
pub mod redis;
#[cfg(feature = "sqlite")]
pub mod sqlite;
