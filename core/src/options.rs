//! The one table of options: name, type, default and meaning. Structs, URLs, maps, bindings and docs all come from it.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;

use crate::error::{Error, Result};

/// What kind of value an option takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Kind {
    /// A time: `30s`, `500ms`, `1h 30m`; a number in a map is milliseconds.
    Duration,
    /// A time, or `forever` / `none`.
    OptionalDuration,
    /// `true` or `false`.
    Boolean,
    /// A whole number.
    Integer,
    /// Text.
    Text,
    /// Text by name; in a URL `key=value,key=value`.
    Map,
}

/// Where an option may be given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// For a client (in its URL) as the default of its locks, and for each lock.
    Lock,
    /// For a client only.
    Client,
}

/// One row of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct OptionRow {
    /// The name, the same in every language but for its case.
    pub name: &'static str,
    /// The kind of its value.
    pub kind: Kind,
    /// The default, as it would be written in a URL.
    pub default: &'static str,
    /// Where it may be given.
    pub scope: Scope,
    /// What it means.
    pub doc: &'static str,
}

macro_rules! options {
    ($($(#[doc = $doc:literal])+ $name:ident: $type:ty = $default:literal, $kind:ident, $scope:ident, $read:ident;)+) => {
        /// Every option with its value. See [`TABLE`] for names, defaults and meaning.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct Options { $($(#[doc = $doc])+ pub $name: $type,)+ }

        /// The table.
        pub const TABLE: &[OptionRow] = &[$(OptionRow {
            name: stringify!($name),
            kind: Kind::$kind,
            default: $default,
            scope: Scope::$scope,
            doc: concat!($($doc),+).trim_ascii(),
        },)+];

        impl Default for Options {
            fn default() -> Self {
                let text = |default: &str| Value::String(default.to_owned());
                Self { $($name: $read(stringify!($name), &text($default)).expect("defaults are valid"),)+ }
            }
        }

        impl Options {
            /// Sets one option by name, from text or a JSON value. An unknown name is refused with the nearest known one.
            pub fn set(&mut self, name: &str, value: &Value) -> Result<()> {
                match name {
                    $(stringify!($name) => self.$name = $read(stringify!($name), value)?,)+
                    _ => return Err(unknown(name)),
                }
                Ok(())
            }
        }
    };
}

options! {
    /// Length of the lease. If the holder dies, the lock is free again after at most this time.
    ttl: Duration = "30s", Duration, Lock, ttl;
    /// Whether the lease is renewed, at a third of its length, for as long as the guard lives. `false`: a fixed lease.
    renew: bool = "true", Boolean, Lock, boolean;
    /// How long `acquire` waits for the lock before it fails with `timeout`. `0s` asks once and does not queue.
    wait: Option<Duration> = "forever", OptionalDuration, Lock, optional;
    /// The longest a lock may be held, however often it is renewed.
    max_hold: Option<Duration> = "none", OptionalDuration, Lock, positive;
    /// Whether the lock goes to waiters in their order of arrival. `false`: whoever comes first wins, which gives more
    /// throughput; nobody is passed over more than twice or for longer than a second.
    fair: bool = "true", Boolean, Lock, boolean;
    /// How the lock is laid out on the store. `auto` is the store's own; `plain:<prefix>` on Redis is the string key
    /// that redis-py, node-redlock, redsync and their like use.
    dialect: Dialect = "auto", Text, Lock, dialect;
    /// A word for people who inspect the lock.
    label: String = "", Text, Lock, text;
    /// More words for people who inspect the lock, by name.
    metadata: BTreeMap<String, String> = "", Map, Lock, map;
    /// How often a lock may pass from waiter to waiter inside this client (for at most 10 ms) before others are served.
    /// `0`: never.
    local: u32 = "16", Integer, Lock, integer;
    /// How long to wait for an answer of the store before the outcome counts as unknown.
    timeout: Duration = "5s", Duration, Client, timeout;
    /// On a quorum: the longest lease, and for how long a node that may have lost its data does not vote. The same for all
    /// clients.
    max_ttl: Duration = "60s", Duration, Client, ttl;
    /// How long to try to reach the store before it counts as unavailable.
    connect_timeout: Duration = "5s", Duration, Client, timeout;
}

/// How a lock is laid out on a store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Dialect {
    /// The store's own layout.
    #[default]
    Auto,
    /// Redis: a string key, this prefix and the name, whose value is the owner id.
    Plain {
        /// What stands before the name.
        prefix: String,
    },
}

impl Dialect {
    /// The dialect's word, without its parameters.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Plain { .. } => "plain",
        }
    }
}

impl Options {
    /// Sets many options by name. Those of scope `client` are refused unless `client` says they belong here.
    pub fn set_all<'a>(
        &mut self,
        values: impl IntoIterator<Item = (&'a str, Value)>,
        client: bool,
    ) -> Result<()> {
        for (name, value) in values {
            let row = TABLE.iter().find(|row| row.name == name).ok_or_else(|| unknown(name))?;
            if row.scope == Scope::Client && !client {
                return Err(Error::invalid(
                    row.name,
                    format!("`{name}` belongs to the client: give it in the URL, not for one lock"),
                ));
            }
            self.set(name, &value)?;
        }
        Ok(())
    }

    /// Checks the values a struct was filled with, as the other ways in do one by one.
    pub fn check(&self) -> Result<()> {
        check_ttl("ttl", self.ttl)?;
        check_ttl("timeout", self.timeout)?;
        check_ttl("connect_timeout", self.connect_timeout)?;
        check_ttl("max_ttl", self.max_ttl)?;
        if self.max_hold.is_some_and(|hold| hold.is_zero()) {
            return Err(Error::invalid("max_hold", "`max_hold` must be longer than zero"));
        }
        Ok(())
    }
}

/// Checks a lock's name: 1 to 512 bytes of UTF-8 without control characters.
pub fn check_name(name: &str) -> Result<()> {
    let complaint = if name.is_empty() {
        "a lock's name must not be empty"
    } else if name.len() > 512 {
        "a lock's name must not be longer than 512 bytes; hash the long part of it"
    } else if name.chars().any(char::is_control) {
        "a lock's name must not contain control characters"
    } else {
        return Ok(());
    };
    Err(Error::invalid("name", complaint).with("length", name.len().to_string()))
}

fn unknown(name: &str) -> Error {
    let meant = name.to_lowercase().replace(['-', ' '], "_");
    let nearest = TABLE.iter().max_by(|a, b| {
        strsim::jaro_winkler(&meant, a.name).total_cmp(&strsim::jaro_winkler(&meant, b.name))
    });
    let nearest = nearest.map_or("ttl", |row| row.name);
    let shown: String = name.chars().filter(|c| !c.is_control()).take(40).collect();
    Error::invalid("option", format!("there is no option `{shown}`; the nearest is `{nearest}`"))
        .with("nearest", nearest)
}

const SHORTEST: Duration = Duration::from_millis(10);
const LONGEST: Duration = Duration::from_hours(30 * 24);

pub(crate) fn check_ttl(name: &'static str, value: Duration) -> Result<Duration> {
    if value < SHORTEST || value > LONGEST {
        return Err(Error::invalid(
            name,
            format!(
                "`{name}` must be between 10 ms and 30 days, not {}",
                humantime::format_duration(value)
            ),
        ));
    }
    Ok(value)
}

fn ttl(name: &'static str, value: &Value) -> Result<Duration> {
    check_ttl(name, duration(name, value)?)
}

fn timeout(name: &'static str, value: &Value) -> Result<Duration> {
    check_ttl(name, duration(name, value)?)
}

fn duration(name: &'static str, value: &Value) -> Result<Duration> {
    let complaint = || {
        Error::invalid(
            name,
            format!(
                "`{name}` must be a time such as `30s` or `500ms`, or milliseconds as a number"
            ),
        )
    };
    match value {
        Value::String(text) => humantime::parse_duration(text).map_err(|_| complaint()),
        Value::Number(number) => {
            let millis = number.as_f64().filter(|millis| *millis >= 0.0).ok_or_else(complaint)?;
            Duration::try_from_secs_f64(millis / 1000.0).map_err(|_| complaint())
        }
        _ => Err(complaint()),
    }
}

fn optional(name: &'static str, value: &Value) -> Result<Option<Duration>> {
    match value {
        Value::Null => Ok(None),
        Value::String(text) if text == "forever" || text == "none" => Ok(None),
        // Beyond a century a wait is for ever, whatever its number.
        _ => Ok(Some(duration(name, value)?).filter(|wait| wait.as_secs() < 100 * 365 * 86_400)),
    }
}

fn positive(name: &'static str, value: &Value) -> Result<Option<Duration>> {
    match optional(name, value)? {
        Some(Duration::ZERO) => {
            Err(Error::invalid(name, format!("`{name}` must be longer than zero")))
        }
        other => Ok(other),
    }
}

fn boolean(name: &'static str, value: &Value) -> Result<bool> {
    match value {
        Value::Bool(value) => Ok(*value),
        Value::String(text) if text == "true" => Ok(true),
        Value::String(text) if text == "false" => Ok(false),
        _ => Err(Error::invalid(name, format!("`{name}` must be `true` or `false`"))),
    }
}

fn integer(name: &'static str, value: &Value) -> Result<u32> {
    let number = match value {
        Value::String(text) => text.parse().ok(),
        Value::Number(number) => number.as_u64(),
        _ => None,
    };
    let number =
        number.and_then(|number| u32::try_from(number).ok()).filter(|number| *number <= 10_000);
    number.ok_or_else(|| {
        Error::invalid(name, format!("`{name}` must be a whole number from 0 to 10000"))
    })
}

fn text(name: &'static str, value: &Value) -> Result<String> {
    match value {
        Value::String(text) if text.len() <= 1024 && !text.chars().any(char::is_control) => {
            Ok(text.clone())
        }
        _ => Err(Error::invalid(
            name,
            format!("`{name}` must be text of at most 1024 bytes without control characters"),
        )),
    }
}

fn map(name: &'static str, value: &Value) -> Result<BTreeMap<String, String>> {
    let complaint = || {
        Error::invalid(
            name,
            format!("`{name}` must be text by name, in a URL `key=value,key=value`"),
        )
    };
    let pair = |key: &str, value: &str| {
        Ok((key.to_owned(), text(name, &Value::String(value.to_owned()))?))
    };
    match value {
        Value::String(all) if all.is_empty() => Ok(BTreeMap::new()),
        Value::String(all) => all
            .split(',')
            .map(|one| {
                one.split_once('=').ok_or_else(complaint).and_then(|(key, value)| pair(key, value))
            })
            .collect(),
        Value::Object(object) => object
            .iter()
            .map(|(key, value)| {
                value.as_str().ok_or_else(complaint).and_then(|value| pair(key, value))
            })
            .collect(),
        _ => Err(complaint()),
    }
}

fn dialect(name: &'static str, value: &Value) -> Result<Dialect> {
    let text = text(name, value)?;
    match text.split_once(':') {
        None if text == "auto" => Ok(Dialect::Auto),
        Some(("plain", prefix)) if prefix.len() <= 256 => {
            Ok(Dialect::Plain { prefix: prefix.to_owned() })
        }
        _ => Err(Error::invalid(
            name,
            "`dialect` must be `auto` or `plain:<prefix>`; the prefix may be empty",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Code;

    #[test]
    fn every_row_can_be_set_to_its_default() {
        for row in TABLE {
            let mut options = Options::default();
            options.set(row.name, &Value::String(row.default.into())).unwrap();
            assert_eq!(options, Options::default(), "{}", row.name);
        }
    }

    #[test]
    fn an_unknown_option_names_the_nearest() {
        let error = Options::default().set("tll", &Value::Null).unwrap_err();
        assert_eq!((error.code(), error.fields()["nearest"].as_str()), (Code::Invalid, "ttl"));
    }

    #[test]
    fn absurd_times_are_refused() {
        for bad in ["0s", "1ms", "31days", "-1s", "soon", ""] {
            assert!(Options::default().set("ttl", &Value::String(bad.into())).is_err(), "{bad}");
        }
        assert!(Options::default().set("ttl", &serde_json::json!(-5)).is_err());
        assert!(Options::default().set("ttl", &serde_json::json!(1e300)).is_err());
    }
}
