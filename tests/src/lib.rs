//! How fencelock is known to work: the conformance engine, the models of the stores, and the real servers they run on.

pub mod actor;
pub mod bare;
pub mod beside;
pub mod chosen_table;
pub mod clerk;
pub mod command_line;
pub mod conformance;
pub mod database;
pub mod database_faults;
pub mod database_sessions;
pub mod equivalence;
pub mod etcd;
pub mod etcd_cluster;
pub mod failover;
pub mod foreign_tables;
pub mod freeze;
pub mod lines;
pub mod majority;
pub mod mysql;
pub mod other_library;
pub mod own_table;
pub mod peer;
pub mod periods;
pub mod place;
pub mod postgres;
pub mod protocol;
pub mod proxy;
pub mod queue_model;
pub mod queues;
pub mod redisson;
pub mod servers;
pub mod session_cells;
pub mod session_store;
pub mod shop;
pub mod stopped_clock;
pub mod turns;
pub mod zookeeper;
pub mod zookeeper_ensemble;

pub use fencelock_servers::ended;

/// Whether faults and random cases run in full (`FENCELOCK_FULL`), instead of at a tenth.
pub fn in_full() -> bool {
    std::env::var_os("FENCELOCK_FULL").is_some()
}
