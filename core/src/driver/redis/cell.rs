//! Cells: values with versions, a hash each.
//!
//! The cell `K` lies under `fencelock:{tag}:version:K`, or `:job:K` for a scheduled job, in K's own hash slot:
//!
//! | field | content |
//! |---|---|
//! | `t` | the trail: of its newest changes, newest first, the version as 16 digits and the writer as 32 |
//! | `s` | when it was changed last, in µs |
//! | `v` | the value; none if it was deleted |
//!
//! A look is 3 commands (EVALSHA TIME HMGET), a change 5 (EVALSHA TIME HMGET HSET and PEXPIRE or PERSIST), a deletion 6.

use std::sync::Arc;

use redis::{Cmd, Value};

use super::request::millis;
use super::script::{LOOK_CELL, SWAP, Script};
use super::{RedisStore, Servers, fault, place};
use crate::error::{Code, Error, Result};
use crate::port::{Cell, CellKey, CellStore, Change, Failure, Look, Mark, OwnerId, Swap, Version};

/// The digits of a version, and of a mark: version and writer.
const VERSION: usize = 16;
pub(super) const MARK: usize = VERSION + 32;

/// One script on one cell, for whichever server has it.
pub(super) struct CellCall<'a> {
    pub(super) script: Script,
    pub(super) slot: u16,
    place: String,
    change: Option<&'a Change>,
}

impl<'a> CellCall<'a> {
    fn new(script: Script, key: &CellKey, change: Option<&'a Change>) -> Self {
        Self { script, slot: place::slot_of(&key.name), place: place::cell_key(key), change }
    }

    /// The call by the script's hash (`EVALSHA`) or its text (`EVAL`).
    pub(super) fn command(&self, verb: &str, script: &str) -> Cmd {
        let mut command = redis::cmd(verb);
        command.arg(script).arg(1).arg(&self.place);
        if let Some(change) = self.change {
            arguments(&mut command, change);
        }
        command
    }
}

impl CellStore for RedisStore {
    async fn read(&self, key: &CellKey) -> Result<Look> {
        let call = CellCall::new(LOOK_CELL, key, None);
        let reply = self.call(&call, key).await.map_err(|failure| failure.error)?;
        look(reply).ok_or_else(|| garbled(key))
    }

    async fn compare_and_set(&self, change: &Change) -> Result<Swap, Failure> {
        let call = CellCall::new(SWAP, &change.key, Some(change));
        let reply = self.call(&call, &change.key).await?;
        let swap = match &reply {
            Value::Array(words) => match words[..] {
                [Value::Int(version), Value::Int(since)] => done(version, since),
                _ => look(reply).map(Swap::Other),
            },
            _ => None,
        };
        swap.ok_or_else(|| Failure::unknown(garbled(&change.key)))
    }
}

impl RedisStore {
    /// Runs a script on one cell, where it lies.
    async fn call(&self, call: &CellCall<'_>, key: &CellKey) -> Result<Value, Failure> {
        let refused = |reply| match reply {
            Value::ServerError(error) => {
                let text = format!("{} {}", error.code(), error.details().unwrap_or_default());
                Err(Failure::refused(self.refusal(&text, key, &call.place)))
            }
            reply => Ok(reply),
        };
        match &self.servers {
            Servers::One(node) => {
                let live = node.link.live().await.map_err(Failure::refused)?;
                let reply = node.run(&live, call, false).await.map_err(Failure::unknown)?;
                refused(reply).inspect_err(|failure| {
                    if fault::is_demotion(&failure.error) {
                        node.link.demote(&live);
                    }
                })
            }
            Servers::Cluster(cluster) => refused(cluster.run(call).await?),
        }
    }

    fn refusal(&self, text: &str, key: &CellKey, place: &str) -> Error {
        if text.contains("WRONGTYPE") {
            let message = "what lies under the key of this value is none of fencelock's; delete it or choose another name";
            return Error::new(Code::Conflict, message).with("key", place);
        }
        fault::refusal(self.address(), text, None).with("name", &*key.name)
    }
}

fn arguments(command: &mut Cmd, change: &Change) {
    command
        .arg(change.expected.map_or(0, Version::get))
        .arg(change.writer.encode(&mut [0; 32]))
        .arg(change.life().map_or(0, millis));
    if let Some(value) = &change.value {
        command.arg(&**value);
    }
}

fn done(version: i64, since: i64) -> Option<Swap> {
    let version = Version::new(u64::try_from(version).ok()?);
    Some(Swap::Done { version, since: u64::try_from(since).ok()? })
}

fn look(reply: Value) -> Option<Look> {
    let Value::Array(words) = reply else { return None };
    let [trail, since, value, Value::Int(clock)] = &words[..] else { return None };
    let clock = u64::try_from(*clock).ok()?;
    let (Value::BulkString(trail), Value::Int(since)) = (trail, since) else {
        return (*trail == Value::Int(0)).then_some(Look { cell: None, clock });
    };
    let value = match value {
        Value::BulkString(value) => Some(Arc::from(std::str::from_utf8(value).ok()?)),
        Value::Nil => None,
        _ => return None,
    };
    let trail = std::str::from_utf8(trail).ok()?;
    let marks = (0..trail.len() / MARK).map(|at| mark(trail.get(at * MARK..(at + 1) * MARK)?));
    let trail = marks.collect::<Option<Vec<_>>>().filter(|marks| !marks.is_empty())?;
    Some(Look { cell: Some(Cell { value, since: u64::try_from(*since).ok()?, trail }), clock })
}

fn mark(text: &str) -> Option<Mark> {
    let (version, writer) = text.split_at_checked(VERSION)?;
    let version = Version::new(version.parse().ok()?);
    Some(Mark { version, writer: OwnerId::parse(writer)? })
}

/// Something that no script of ours gives.
fn garbled(key: &CellKey) -> Error {
    let message = "what lies under the key of this value is not as fencelock wrote it; delete it or choose another name";
    Error::new(Code::Conflict, message).with("key", place::cell_key(key))
}
