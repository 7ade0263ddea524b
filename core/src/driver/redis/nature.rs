//! What a server is, by its own word.

use std::collections::BTreeMap;

use redis::aio::MultiplexedConnection;
use redis::{Cmd, RedisError, Value};

use super::address::{Address, Topology};
use super::fault::{self, NO_CLUSTER};
use crate::error::{Code, Error, Result};

/// What a server says of itself. One that does not say is taken as it comes.
#[derive(Debug, Default)]
pub(super) struct Nature {
    /// `standalone`, `cluster` or `sentinel`.
    mode: String,
    replica: bool,
    /// What its settings break.
    pub(super) warning: Option<&'static str>,
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

/// Asks what becomes of keys when the server's memory is full. Who may not ask is not told, and works.
pub(super) fn memory() -> Cmd {
    let mut question = redis::cmd("INFO");
    question.arg("memory");
    question
}

/// What follows by the answer to [`memory`].
pub(super) fn eviction(told: Value) -> Option<&'static str> {
    if mutant!(EvictionNotAsked) {
        return None;
    }
    let told: String = redis::from_redis_value(told).ok()?;
    let value = |name| told.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    let policy = value("maxmemory_policy")?;
    // Without a limit nothing is evicted.
    let limited = value("maxmemory")? != "0";
    EVICTION.iter().find(|(name, _)| limited && policy.starts_with(name)).map(|(_, what)| *what)
}

impl Nature {
    /// Asks, in one round trip: `HELLO` alone changes nothing, and is granted to everybody.
    pub(super) async fn of(connection: &mut MultiplexedConnection) -> Result<Self, RedisError> {
        let mut questions = redis::pipe();
        questions.cmd("HELLO").add_command(memory());
        let mut replies = connection.send_packed_commands(&questions, 0, 2).await?;
        let warning = replies.pop().and_then(eviction);
        let hello = replies.pop().unwrap_or(Value::Nil);
        let Ok(words) = redis::from_redis_value::<BTreeMap<String, Value>>(hello) else {
            return Ok(Self { warning, ..Self::default() });
        };
        let word = |name| match words.get(name) {
            Some(Value::BulkString(bytes)) => String::from_utf8_lossy(bytes).into_owned(),
            Some(Value::SimpleString(text)) => text.clone(),
            _ => String::new(),
        };
        let replica = matches!(&*word("role"), "replica" | "slave");
        Ok(Self { mode: word("mode"), replica, warning })
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
