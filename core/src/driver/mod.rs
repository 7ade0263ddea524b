//! Stores: a folder or file for each, with its steps and dialects. `record` and `cell` are the models, `sql` is what PostgreSQL and
//! MySQL share; the other files are shared by several stores, as their `cfg`s say.

#[cfg(any(
    feature = "etcd",
    feature = "mysql",
    feature = "postgres",
    feature = "redis",
    feature = "zookeeper"
))]
mod addresses;
#[doc(hidden)]
pub mod cell;
#[cfg(any(feature = "etcd", feature = "zookeeper"))]
pub(crate) mod cell_document;
#[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
mod cell_row;
#[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
mod columns;
#[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
pub(crate) mod datagram;
#[cfg(any(feature = "etcd", feature = "zookeeper"))]
mod entry_text;
#[cfg(feature = "etcd")]
pub mod etcd;
#[cfg(any(
    feature = "etcd",
    feature = "mysql",
    feature = "postgres",
    feature = "redis",
    feature = "zookeeper"
))]
mod hosts;
#[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
mod identifier;
#[cfg(any(feature = "etcd", feature = "zookeeper"))]
mod members;
pub mod memory;
#[cfg(feature = "mysql")]
pub mod mysql;
pub(crate) mod numbers;
#[cfg(any(feature = "mysql", feature = "postgres"))]
mod own_table;
#[cfg(any(feature = "mysql", feature = "postgres", feature = "redis"))]
mod password_file;
#[cfg(feature = "postgres")]
pub mod postgres;
#[doc(hidden)]
pub mod record;
#[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
mod record_row;
#[cfg(any(feature = "redis", feature = "host"))]
pub mod redis;
#[cfg(any(feature = "mysql", feature = "postgres", feature = "redis"))]
mod socket_file;
#[cfg(any(feature = "mysql", feature = "postgres"))]
mod sql;
#[cfg(feature = "sqlite")]
pub mod sqlite;
#[cfg(any(feature = "etcd", feature = "postgres", feature = "redis"))]
mod tcp;
#[cfg(feature = "tls")]
pub(crate) mod tls;
#[cfg(all(
    any(
        feature = "etcd",
        feature = "mysql",
        feature = "postgres",
        feature = "redis",
        feature = "zookeeper"
    ),
    not(feature = "tls")
))]
#[path = "no_tls.rs"]
pub(crate) mod tls;
#[cfg(any(
    feature = "etcd",
    feature = "host",
    feature = "mysql",
    feature = "postgres",
    feature = "redis",
    feature = "zookeeper"
))]
mod within;
#[cfg(feature = "zookeeper")]
pub mod zookeeper;
