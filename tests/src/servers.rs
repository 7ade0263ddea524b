//! Real servers, started on free ports and stopped by pid.

mod authority;
mod cluster;
mod redis;
mod sentinel;

pub use self::authority::Authority;
pub use self::cluster::{ClusterSet, Move};
pub use self::redis::{RedisServer, commands, rights, rights_as_redisson};
pub use self::sentinel::{Guard, SentinelSet};
