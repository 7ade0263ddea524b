//! The arguments for the command line, and the output it prints.

use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitStatus, Output};

use fencelock::Code;
use fencelock::options::{OptionKind, TABLE};
use serde_json::{Value, json};
use url::form_urlencoded::byte_serialize;

use super::{LOST, refusal};
use crate::protocol::{End, Options, Refusal};

/// 128 and SIGTERM: it gave up because it was told to.
const TERMINATED: i32 = 143;

/// How a command ended.
#[derive(Clone, Debug)]
pub(super) struct Outcome {
    /// Its exit code, if no signal ended it.
    pub code: Option<i32>,
    /// The last thing it said.
    said: String,
}

impl Outcome {
    pub(super) fn new(status: ExitStatus, said: &str) -> Self {
        let last = said.lines().rev().find_map(|line| line.strip_prefix("fencelock: "));
        let code = status.code().or(status.signal().map(|signal| 128 + signal));
        Self { code, said: last.unwrap_or_default().to_owned() }
    }

    pub(super) fn of(ended: &Output) -> Self {
        Self::new(ended.status, &String::from_utf8_lossy(&ended.stderr))
    }

    /// Of a run that never had its lock.
    pub(super) fn refused(&self, once: bool) -> End {
        let refusal = self.refusal();
        if once && refusal.code == Code::Timeout {
            End::Ok(Value::Null)
        } else {
            End::Error(refusal)
        }
    }

    /// Of a run that was told to end.
    pub(super) fn released(&self) -> End {
        match self.code {
            Some(0) if self.said.contains("did not confirm") => End::Ok(json!("unconfirmed")),
            Some(0) => End::Ok(json!("released")),
            Some(LOST) => End::Ok(json!("already_lost")),
            _ => End::Error(self.refusal()),
        }
    }

    /// Of a run whose command ended by itself.
    pub(super) fn body(&self, token: u64) -> End {
        match self.code {
            Some(0) => End::Ok(json!({"token": token})),
            _ => End::Error(self.refusal()),
        }
    }

    /// The error it told; its code and its exit code have to agree.
    pub(super) fn refusal(&self) -> Refusal {
        if self.code == Some(TERMINATED) {
            return refusal(Code::Cancelled, "the command was told to give up");
        }
        let told = self.said.split_once(": ").and_then(|(code, rest)| {
            let code: Code = serde_json::from_value(code.into()).ok()?;
            (self.code == Some(exit_code(code))).then_some((code, rest))
        });
        let Some((code, rest)) = told else {
            let message = format!("ended with {:?} and said: {}", self.code, self.said);
            return refusal(Code::Internal, &message);
        };
        let (message, fields) = fields(rest);
        let retryable = matches!(code, Code::Timeout | Code::Unavailable);
        Refusal { code, message: message.to_owned(), retryable, fields }
    }
}

/// The exit code `fencelock --help` promises for an error.
fn exit_code(code: Code) -> i32 {
    match code {
        Code::Timeout => 75,
        Code::Unavailable => 69,
        Code::Auth => 77,
        Code::Invalid | Code::Unsupported | Code::Conflict => 78,
        Code::Lost | Code::NotHeld => LOST,
        _ => 70,
    }
}

/// A message and the fields behind it: `what happened (name: value, name: value)`.
fn fields(text: &str) -> (&str, BTreeMap<String, String>) {
    let mut depth = 0;
    let begin = text.char_indices().rev().find(|(_, letter)| {
        depth += i32::from(*letter == ')') - i32::from(*letter == '(');
        depth == 0
    });
    let Some((at, '(')) = begin else { return (text, BTreeMap::new()) };
    let mut fields: Vec<(String, String)> = Vec::new();
    for part in text[at + 1..text.len() - 1].split(", ") {
        match (part.split_once(": "), fields.last_mut()) {
            (Some((name, value)), _) if !name.contains(' ') => {
                fields.push((name.to_owned(), value.to_owned()));
            }
            (_, Some((_, value))) => *value = format!("{value}, {part}"),
            (_, None) => return (text, BTreeMap::new()),
        }
    }
    (text[..at].trim_end(), fields.into_iter().collect())
}

/// A URL with these options in its query.
pub(super) fn query(url: &str, options: &Options) -> String {
    options.iter().fold(url.to_owned(), |url, (name, value)| {
        let mark = if url.contains('?') { '&' } else { '?' };
        let value: String = byte_serialize(written(name, value).as_bytes()).collect();
        format!("{url}{mark}{name}={}", value.replace('+', "%20"))
    })
}

/// An option's value as text: plain numbers of times are milliseconds.
pub(super) fn written(name: &str, value: &Value) -> String {
    let kind = TABLE.iter().find(|row| row.name == name).map(|row| row.kind);
    match (value, kind) {
        (Value::Number(number), Some(OptionKind::Duration | OptionKind::OptionalDuration)) => {
            // Without an exponent.
            format!("{}ms", number.as_f64().unwrap_or_default())
        }
        (Value::String(text), _) => text.clone(),
        (Value::Null, _) => "none".to_owned(),
        (other, _) => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_read_as_they_are_told() {
        let told =
            "unavailable: not there; is it on? (reason: refused (os error 111), no, server: a:1)";
        let outcome = Outcome { code: Some(69), said: told.to_owned() };
        let refusal = outcome.refusal();
        assert_eq!((refusal.code, refusal.retryable), (Code::Unavailable, true));
        assert_eq!(refusal.message, "not there; is it on?");
        assert_eq!(refusal.fields["reason"], "refused (os error 111), no");
        assert_eq!(refusal.fields["server"], "a:1");
        // The exit code is part of what is told.
        let wrong = Outcome { code: Some(75), ..outcome };
        assert_eq!(wrong.refusal().code, Code::Internal);
    }

    #[test]
    fn options_are_written_as_text() {
        let options = json!({"ttl": 1500, "info": {"room": "1 2"}, "renew": false});
        let options = options.as_object().unwrap();
        let url = query("redis://h?a=b", options);
        assert_eq!(url, "redis://h?a=b&info=%7B%22room%22%3A%221%202%22%7D&renew=false&ttl=1500ms");
    }
}
