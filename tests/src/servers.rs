//! Real servers, started on free ports and stopped by pid.

mod authority;
mod cluster;
mod quorum;
mod redis;
mod sentinel;

pub use self::authority::Authority;
pub use self::cluster::{ClusterSet, Move};
pub use self::quorum::QuorumSet;
pub use self::redis::{RedisServer, commands, held, rights, rights_as_redisson};
pub use self::sentinel::{Guard, SentinelSet};
