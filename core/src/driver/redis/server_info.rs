//! The mode, role and warning of a server, as it reports them itself.

use std::collections::BTreeMap;

use redis::aio::MultiplexedConnection;
use redis::{RedisError, Value};

use super::address::{Address, Topology};
use super::eviction;
use super::fault::{self, NO_CLUSTER};
use crate::error::{Code, Error, Result};

/// The information that a server gives about itself. A server that gives none is accepted as it is.
#[derive(Debug, Default)]
pub(super) struct ServerInfo {
    /// `standalone`, `cluster` or `sentinel`.
    mode: String,
    replica: bool,
    /// The warning that its settings break a guarantee, if they do.
    pub(super) warning: Option<&'static str>,
}

impl ServerInfo {
    /// Asks, in one round trip: `HELLO` alone changes nothing, and is granted to everybody.
    pub(super) async fn of(connection: &mut MultiplexedConnection) -> Result<Self, RedisError> {
        let mut questions = redis::pipe();
        questions.cmd("HELLO").add_command(eviction::memory());
        let mut replies = connection.send_packed_commands(&questions, 0, 2).await?;
        let warning = replies.pop().and_then(eviction::what_follows);
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
