//! The locks of one server, by their records.

use redis::{Cmd, ParsingError, Value};

use super::keys;
use crate::port::LockKey;

/// How many keys one `SCAN` looks at.
const COUNT: u32 = 1000;

/// A look at all keys, a part at a time.
pub(super) struct Scan<'a> {
    prefix: &'a str,
    /// Where to go on; none: it was all.
    cursor: Option<String>,
}

impl<'a> Scan<'a> {
    /// For the locks whose key begins like this.
    pub(super) fn of(prefix: &'a str) -> Self {
        Self { prefix, cursor: Some("0".to_owned()) }
    }

    /// The next command to send, if the scan is not at its end.
    pub(super) fn next(&self) -> Option<Cmd> {
        let cursor = self.cursor.as_ref()?;
        let mut command = redis::cmd("SCAN");
        command.arg(cursor).arg("MATCH").arg(keys::pattern(self.prefix)).arg("COUNT").arg(COUNT);
        Some(command)
    }

    /// The locks in what came back, perhaps some of them again.
    pub(super) fn take_in(&mut self, reply: Value) -> Result<Vec<LockKey>, ParsingError> {
        let (next, keys): (String, Vec<Vec<u8>>) = redis::from_redis_value(reply)?;
        self.cursor = (next != "0").then_some(next);
        let records = keys.iter().filter_map(|key| std::str::from_utf8(key).ok());
        let locks = records.filter_map(keys::lock_of_record);
        Ok(locks.filter(|lock| lock.as_str().starts_with(self.prefix)).collect())
    }
}
