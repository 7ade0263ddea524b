//! What a server is, by its own word.

use std::collections::BTreeMap;

use redis::aio::MultiplexedConnection;
use redis::{RedisError, Value};

use super::address::{Address, Topology};
use super::fault::{self, NO_CLUSTER};
use crate::error::{Code, Error, Result};

/// What a server says of itself. One that does not say is taken as it comes.
#[derive(Debug, Default)]
pub(super) struct Nature {
    /// `standalone`, `cluster` or `sentinel`.
    mode: String,
    replica: bool,
}

/// What is lost when the server's memory is full, if it evicts keys then: the policies whose names begin so.
const EVICTION: [(&str, &str); 2] = [
    (
        "allkeys-",
        "the server evicts keys when its memory is full, also locks and what gates and values remember: two may hold at once, and a stale write may pass; set `maxmemory-policy noeviction`, or use a server of its own for locks",
    ),
    (
        "volatile-",
        "the server evicts keys with an end when its memory is full, locks among them: two may hold at once until the first one's next renewal; set `maxmemory-policy noeviction`, or use a server of its own for locks",
    ),
];

/// What follows if this server's memory gets full. It is asked where that is allowed; where it is not, nothing is known.
pub(super) async fn eviction(connection: &mut MultiplexedConnection) -> Option<&'static str> {
    let told = connection.send_packed_command(redis::cmd("INFO").arg("memory")).await.ok()?;
    let told: String = redis::from_redis_value(told).ok()?;
    let value = |name| told.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    let policy = value("maxmemory_policy")?;
    // Without a limit nothing is evicted.
    let limited = value("maxmemory")? != "0";
    EVICTION.iter().find(|(name, _)| limited && policy.starts_with(name)).map(|(_, what)| *what)
}

impl Nature {
    /// Asks: `HELLO` alone changes nothing, and is granted to everybody.
    pub(super) async fn of(connection: &mut MultiplexedConnection) -> Result<Self, RedisError> {
        let reply = connection.send_packed_command(&redis::cmd("HELLO")).await?;
        let Ok(words) = redis::from_redis_value::<BTreeMap<String, Value>>(reply) else {
            return Ok(Self::default());
        };
        let word = |name| match words.get(name) {
            Some(Value::BulkString(bytes)) => String::from_utf8_lossy(bytes).into_owned(),
            Some(Value::SimpleString(text)) => text.clone(),
            _ => String::new(),
        };
        Ok(Self { mode: word("mode"), replica: matches!(&*word("role"), "replica" | "slave") })
    }

    /// Whether this is the kind of server that was looked for. `master`: only that will do.
    pub(super) fn check(&self, address: &Address, master: bool) -> Result<()> {
        let wrong = |message| {
            Err(Error::new(Code::Unsupported, message).with("server", address.to_string()))
        };
        match (&address.topology, &*self.mode) {
            (Topology::Single(_), "cluster") => wrong(
                "the server is a node of a cluster; write `redis+cluster://`, with this node and others",
            ),
            (Topology::Node(_), "standalone") => wrong(NO_CLUSTER),
            (_, "sentinel") => wrong(
                "the server is a sentinel; write `redis+sentinel://`, the sentinels, and the master's name as the path",
            ),
            _ if master && self.replica => Err(fault::refusal(address, "READONLY", None)),
            _ => Ok(()),
        }
    }
}
