//! Options of single stores that are one word out of a few.

use serde_json::Value;

use super::Times;
use crate::error::{Error, Result};

/// What a commit on a database waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Durability {
    /// The disk: what was answered survives a crash.
    #[default]
    Durable,
    /// Nothing: a crash of the server may undo what was answered last.
    Relaxed,
}

impl Durability {
    /// Its word in a URL.
    pub fn word(self) -> &'static str {
        match self {
            Self::Durable => "durable",
            Self::Relaxed => "relaxed",
        }
    }
}

/// Whether the way to a database is encrypted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum SslMode {
    /// Unless it stays on this machine.
    #[default]
    Auto,
    /// Always, and the server has to prove that it is the host of the URL.
    VerifyFull,
    /// Never.
    Disable,
}

impl SslMode {
    /// Its word in a URL.
    pub fn word(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::VerifyFull => "verify-full",
            Self::Disable => "disable",
        }
    }
}

pub(super) fn durability(name: &'static str, value: &Value, _: Times) -> Result<Durability> {
    let both = [Durability::Durable, Durability::Relaxed];
    let known = both.into_iter().find(|one| value.as_str() == Some(one.word()));
    known.ok_or_else(|| Error::invalid(name, "`durability` must be `durable` or `relaxed`"))
}

pub(super) fn sslmode(name: &'static str, value: &Value, _: Times) -> Result<SslMode> {
    let all = [SslMode::Auto, SslMode::VerifyFull, SslMode::Disable];
    let known = all.into_iter().find(|one| value.as_str() == Some(one.word()));
    let complaint = "`sslmode` must be `verify-full`, `disable` or `auto`: without a check of the server, encryption does not stop an attacker in between";
    known.ok_or_else(|| Error::invalid(name, complaint))
}
