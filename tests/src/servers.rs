//! Real servers, started on free ports and stopped by pid.

mod redis;

pub use self::redis::{RedisServer, commands};
