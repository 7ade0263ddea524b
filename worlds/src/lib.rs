//! The simulator: fencelock's own algorithms in virtual time, over a store and a network that fail on purpose.

pub mod actor;
pub mod campaign;
pub mod cancel;
pub mod checker;
mod draw;
pub mod network;
pub mod network_store;
pub mod plan;
pub mod server;
pub mod shrink;
pub mod stores;
pub mod world;
