//! Faults and clauses on real stores: `cargo test --test stores -- redis::` runs one subject. `cargo test-all --full` runs each subject as
//! a process of its own, because `inherited` forks this process and `relay` counts its ports.
#![allow(missing_docs)]
// Two subjects play the same worlds, each over a store of its own.
#![allow(clippy::duplicate_mod)]

mod blocking;
mod cancels;
mod equivalence;
mod equivalence_cells;
mod etcd;
mod fleet;
mod inherited;
mod kills;
mod mysql;
mod postgres;
mod redis;
mod redlock;
#[cfg(target_os = "linux")]
mod relay;
mod severed;
mod sizes;
mod sqlite;
mod topologies;
mod zookeeper;
