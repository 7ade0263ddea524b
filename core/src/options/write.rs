//! Values of options as JSON, so that they can be read again.

use std::time::Duration;

use serde_json::{Value, json};

use super::{Dialect, Durability, SslMode};

/// A value that an option may have.
pub(super) trait Written {
    /// All words for it, if it is one word out of a few; otherwise empty.
    const WORDS: &'static [&'static str] = &[];

    /// As [`Options::set`](super::Options::set) takes it: times in milliseconds, null for what has no end.
    fn written(&self) -> Value;
}

macro_rules! as_they_are {
    ($($type:ty),+) => {$(
        impl Written for $type {
            fn written(&self) -> Value {
                json!(self)
            }
        }
    )+};
}

as_they_are!(bool, Option<bool>, u32, String);

impl Written for Duration {
    fn written(&self) -> Value {
        json!(self.as_secs_f64() * 1000.0)
    }
}

impl Written for Option<Duration> {
    fn written(&self) -> Value {
        self.as_ref().map_or(Value::Null, Written::written)
    }
}

impl Written for Dialect {
    fn written(&self) -> Value {
        match self {
            Self::Plain { prefix } => json!(format!("plain:{prefix}")),
            _ => json!(self.word()),
        }
    }
}

impl Written for Durability {
    const WORDS: &'static [&'static str] = &["durable", "relaxed"];

    fn written(&self) -> Value {
        json!(self.word())
    }
}

impl Written for SslMode {
    const WORDS: &'static [&'static str] =
        &["auto", "verify-full", "verify-ca", "disable", "require", "prefer", "allow"];

    fn written(&self) -> Value {
        json!(self.word())
    }
}
