//! The option `dialect`: with which other library a lock is shared.

use serde_json::Value;

use super::read::{check_prefix, text};
use crate::error::{Error, Result};

/// How a lock is laid out on a store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Dialect {
    /// The store's own layout.
    #[default]
    Auto,
    /// Redis: a string key, this prefix and the name, whose value is the owner id.
    Plain {
        /// The text before the name.
        prefix: String,
    },
    /// Redis: as Redisson keeps its locks.
    Redisson,
    /// ZooKeeper: as kazoo keeps its locks.
    Kazoo,
    /// PostgreSQL, MySQL: as `ShedLock` keeps its locks.
    Shedlock,
    /// PostgreSQL, MySQL: as Spring Integration's `JdbcLockRegistry` keeps its locks.
    Spring,
}

impl Dialect {
    /// The dialect's word, without its parameters.
    pub(crate) fn word(&self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Plain { .. } => "plain",
            Self::Redisson => "redisson",
            Self::Kazoo => "kazoo",
            Self::Shedlock => "shedlock",
            Self::Spring => "spring",
        }
    }
}

pub(super) fn dialect(name: &'static str, value: &Value) -> Result<Dialect> {
    let text = text(name, value)?;
    match text.split_once(':') {
        None if text == "auto" => Ok(Dialect::Auto),
        None if text == "plain" => Ok(Dialect::Plain { prefix: String::new() }),
        None if text == "redisson" => Ok(Dialect::Redisson),
        None if text == "kazoo" => Ok(Dialect::Kazoo),
        None if text == "shedlock" => Ok(Dialect::Shedlock),
        None if text == "spring" => Ok(Dialect::Spring),
        Some(("plain", prefix)) => {
            check_prefix(name, prefix)?;
            Ok(Dialect::Plain { prefix: prefix.to_owned() })
        }
        _ => Err(Error::invalid(
            name,
            "`dialect` must be `auto`, `redisson`, `kazoo`, `shedlock`, `spring`, `plain` or `plain:<prefix>`; \
             for redis-py, node-redlock and other libraries whose lock is the key of its name it is `plain`",
        )),
    }
}
