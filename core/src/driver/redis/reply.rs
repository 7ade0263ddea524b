//! Commands and replies as a host's client takes and gives them.

use redis::{Arg, Cmd, Value};

/// The answer of a server to one command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// Nothing is there.
    Nil,
    /// A whole number.
    Int(i64),
    /// A text, whatever Redis calls it.
    Text(String),
    /// Several.
    List(Vec<Reply>),
    /// The server's own words for what it did not do, its code first: `WRONGTYPE Operation against a key`.
    Error(String),
}

/// A command as the host sends it.
pub(super) fn words(command: &Cmd) -> Vec<String> {
    let word = |word| match word {
        Arg::Simple(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        _ => String::new(),
    };
    command.args_iter().map(word).collect()
}

/// A reply as if it had come over a connection of ours.
pub(super) fn value(reply: Reply) -> Value {
    match reply {
        Reply::Nil => Value::Nil,
        Reply::Int(number) => Value::Int(number),
        Reply::Text(text) => Value::BulkString(text.into_bytes()),
        Reply::List(replies) => Value::Array(replies.into_iter().map(value).collect()),
        Reply::Error(text) => {
            let line = format!("-{}\r\n", text.replace(['\r', '\n'], " "));
            redis::parse_redis_value(line.as_bytes()).unwrap_or_default()
        }
    }
}
