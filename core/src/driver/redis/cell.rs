//! Cells: values with versions, a hash each.
//!
//! docs/reference/redis.md has their layout.
//!
//! A look is 3 commands (EVALSHA TIME HMGET), a change 5 (EVALSHA TIME HMGET HSET and PEXPIRE or PERSIST), a deletion 6.

use std::sync::Arc;

use redis::{Cmd, Value};

use super::steps::millis;
use super::{
    fault::{self, Named},
    keys,
};
use crate::error::{Code, Error, Result};
use crate::port::{Cell, CellKey, Change, Failure, Look, Mark, OwnerId, Swap, Version};

/// The digits of a version, and of a mark: version and writer.
const VERSION: usize = 16;
const MARK: usize = VERSION + 32;

/// One script on one cell, for whichever server has it.
pub(super) struct CellCall<'a> {
    name: &'a str,
    place: String,
    change: Option<&'a Change>,
}

impl<'a> CellCall<'a> {
    fn new(key: &'a CellKey, change: Option<&'a Change>) -> Self {
        Self { name: &key.name, place: keys::cell_key(key), change }
    }

    /// The slot it lies in.
    #[cfg(feature = "redis")]
    pub(super) fn slot(&self) -> u16 {
        keys::slot_of(self.name)
    }

    /// The call by the hash of the script of cells (`EVALSHA`) or its text (`EVAL`).
    pub(super) fn command(&self, verb: &str, script: &str) -> Cmd {
        let mut command = redis::cmd(verb);
        command.arg(script).arg(1).arg(&self.place);
        if let Some(change) = self.change {
            arguments(&mut command, change);
        }
        command
    }

    /// A look at a cell.
    pub(super) fn look(key: &'a CellKey) -> Self {
        Self::new(key, None)
    }

    /// A change of one.
    pub(super) fn swap(change: &'a Change) -> Self {
        Self::new(&change.key, Some(change))
    }

    /// Reads the reply to [`CellCall::look`].
    pub(super) fn seen(&self, reply: Value) -> Result<Look> {
        look(reply).ok_or_else(|| self.garbled())
    }

    /// Reads the reply to [`CellCall::swap`].
    pub(super) fn swapped(&self, reply: Value) -> Result<Swap, Failure> {
        let swap = match &reply {
            Value::Array(words) => match words[..] {
                [Value::Int(version), Value::Int(since)] => done(version, since),
                _ => look(reply).map(Swap::Other),
            },
            _ => None,
        };
        swap.ok_or_else(|| Failure::unknown(self.garbled()))
    }

    /// The reply, unless the server refused the call.
    pub(super) fn accepted(&self, reply: Value, server: &impl Named) -> Result<Value, Failure> {
        let Value::ServerError(error) = &reply else { return Ok(reply) };
        let text = fault::words(error);
        let error = if text.contains("WRONGTYPE") {
            let message = "what lies under the key of this value is none of fencelock's but somebody else's data; choose another name";
            Error::new(Code::Conflict, message).with("key", &*self.place)
        } else {
            fault::refusal(server, &text, None).with("name", self.name)
        };
        Err(fault::failed(error, &text))
    }

    /// Something that no script of ours gives.
    fn garbled(&self) -> Error {
        let message = "what lies under the key of this value is not as fencelock wrote it; find out who changed it, or choose another name";
        Error::new(Code::Conflict, message).with("key", &*self.place)
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
