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

use super::request::{is_unknown_script, millis};
use super::script::{LOOK_CELL, SWAP, Script};
use super::{RedisStore, fault, place};
use crate::error::{Code, Error, Result};
use crate::port::{Cell, CellKey, CellStore, Change, Failure, Look, Mark, OwnerId, Swap, Version};

/// The digits of a version, and of a mark: version and writer.
const VERSION: usize = 16;
pub(super) const MARK: usize = VERSION + 32;

impl CellStore for RedisStore {
    async fn read(&self, key: &CellKey) -> Result<Look> {
        let reply = self.call(LOOK_CELL, key, |_| {}).await.map_err(|failure| failure.error)?;
        look(reply).ok_or_else(|| garbled(key))
    }

    async fn compare_and_set(&self, change: &Change) -> Result<Swap, Failure> {
        let reply = self.call(SWAP, &change.key, |command| arguments(command, change)).await?;
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
    /// Runs a script on one cell.
    async fn call(
        &self,
        script: Script,
        key: &CellKey,
        arguments: impl Fn(&mut Cmd),
    ) -> Result<Value, Failure> {
        let live = self.link.live().await.map_err(Failure::refused)?;
        let place = place::cell_key(key);
        let command = |verb: &str, text: &str| {
            let mut command = redis::cmd(verb);
            command.arg(text).arg(1).arg(&place);
            arguments(&mut command);
            vec![command]
        };
        let hashed = command("EVALSHA", live.hashes.of(script));
        let mut reply = self.send(&live, hashed).await.map_err(Failure::unknown)?.pop();
        if reply.as_ref().is_some_and(is_unknown_script) {
            let whole = self.with_text(script, |text| command("EVAL", text));
            reply = self.send(&live, whole).await.map_err(Failure::unknown)?.pop();
        }
        match reply {
            Some(Value::ServerError(error)) => {
                let text = format!("{} {}", error.code(), error.details().unwrap_or_default());
                Err(Failure::refused(self.refusal(&text, key, &place)))
            }
            Some(reply) => Ok(reply),
            None => Err(Failure::unknown(garbled(key))),
        }
    }

    fn refusal(&self, text: &str, key: &CellKey, place: &str) -> Error {
        if text.contains("WRONGTYPE") {
            let message = "what lies under the key of this value is none of fencelock's; delete it or choose another name";
            return Error::new(Code::Conflict, message).with("key", place);
        }
        fault::refusal(&self.link.address, text, None).with("name", &*key.name)
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
