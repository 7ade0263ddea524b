//! Options of single stores that are one word out of a few.

use serde_json::Value;

use crate::error::{Error, Result};

/// The event that a commit on a database waits for.
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
    pub(crate) fn word(self) -> &'static str {
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
    /// Always, and a trusted authority has to vouch for the server, under whatever name.
    VerifyCa,
    /// Never.
    Disable,
}

impl SslMode {
    /// Its word in a URL.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::VerifyFull => "verify-full",
            Self::VerifyCa => "verify-ca",
            Self::Disable => "disable",
        }
    }
}

pub(super) fn durability(name: &'static str, value: &Value) -> Result<Durability> {
    let both = [Durability::Durable, Durability::Relaxed];
    let known = both.into_iter().find(|one| value.as_str() == Some(one.word()));
    known.ok_or_else(|| Error::invalid(name, "`durability` must be `durable` or `relaxed`"))
}

/// The longest name of a table: databases take 63 bytes, and names that begin with it are up to 9 longer.
const LONGEST_TABLE: usize = 48;

pub(super) fn table(name: &'static str, value: &Value) -> Result<String> {
    let table = value.as_str().unwrap_or_default();
    check_table(name, table)?;
    Ok(table.to_owned())
}

/// Checks a name that every database takes as it stands, whatever it does with upper case.
pub(crate) fn check_table(name: &'static str, table: &str) -> Result<()> {
    let is_fit = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    let begins = !table.is_empty() && !table.starts_with(|c: char| c.is_ascii_digit());
    if begins && table.len() <= LONGEST_TABLE && table.chars().all(is_fit) {
        return Ok(());
    }
    let message = format!(
        "`{name}` must have 1 to {LONGEST_TABLE} of the characters a to z, 0 to 9 and `_`, and not begin with a digit"
    );
    Err(Error::invalid(name, message))
}

pub(super) fn sslmode(name: &'static str, value: &Value) -> Result<SslMode> {
    let complaint = "`sslmode` must be `verify-full`, `verify-ca`, `disable` or `auto` (`require` means `verify-full`, `prefer` and `allow` mean `auto`): without a check of the server, encryption does not stop an attacker in between";
    match value.as_str().unwrap_or_default() {
        "auto" | "prefer" | "allow" => Ok(SslMode::Auto),
        "verify-full" | "require" => Ok(SslMode::VerifyFull),
        "verify-ca" => Ok(SslMode::VerifyCa),
        "disable" => Ok(SslMode::Disable),
        _ => Err(Error::invalid(name, complaint)),
    }
}
