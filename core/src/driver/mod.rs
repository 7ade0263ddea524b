//! Stores. One folder (or file) per store, each with its steps and dialects; a store line is all another one adds here.

pub mod cell;
#[cfg(feature = "etcd")]
pub(crate) mod cell_document;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
pub(crate) mod datagram;
#[cfg(feature = "etcd")]
pub mod etcd;
#[cfg(any(feature = "etcd", feature = "postgres", feature = "zookeeper"))]
mod hosts;
#[cfg(any(feature = "etcd", feature = "zookeeper"))]
mod line;
#[cfg(any(feature = "etcd", feature = "zookeeper"))]
mod members;
pub mod memory;
pub(crate) mod numbers;
#[cfg(feature = "postgres")]
pub mod postgres;
pub mod queue;
pub mod record;
#[cfg(feature = "postgres")]
pub mod recorded;
#[cfg(any(feature = "redis", feature = "host"))]
pub mod redis;
#[cfg(feature = "sqlite")]
pub mod sqlite;
#[cfg(feature = "tls")]
pub(crate) mod tls;
#[cfg(all(any(feature = "etcd", feature = "postgres", feature = "redis"), not(feature = "tls")))]
#[path = "no_tls.rs"]
pub(crate) mod tls;
#[cfg(feature = "zookeeper")]
pub mod zookeeper;
