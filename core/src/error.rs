//! The error type: one type with a stable code, the same in every language.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};

/// A result whose error is fencelock's.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The stable kind of an error: match on this, show the message to people.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Code {
    /// The wait ended before the lock was granted. Nothing is held.
    Timeout,
    /// The lock was held and is not any more, or can no longer be proved to be.
    Lost,
    /// The guard was released before, so there is nothing to act on.
    NotHeld,
    /// A name, option or URL is not acceptable; the message names it.
    Invalid,
    /// This store or dialect cannot do what was asked.
    Unsupported,
    /// The store could not be reached or could not answer; nothing is held.
    Unavailable,
    /// The store refused the credentials or the user's rights.
    Auth,
    /// The data on the store under this name is not such a lock, or somebody else changed the value meanwhile.
    Conflict,
    /// The caller gave the operation up, or a later request replaced it.
    Cancelled,
    /// The client was closed.
    Closed,
    /// A defect of fencelock itself.
    Internal,
}

impl Code {
    /// The code as the text every language sees, `not_held` for instance.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Timeout => "timeout",
            Self::Lost => "lost",
            Self::NotHeld => "not_held",
            Self::Invalid => "invalid",
            Self::Unsupported => "unsupported",
            Self::Unavailable => "unavailable",
            Self::Auth => "auth",
            Self::Conflict => "conflict",
            Self::Cancelled => "cancelled",
            Self::Closed => "closed",
            Self::Internal => "internal",
        }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// An error with a stable [`Code`], a message that says what to do, and the facts as fields.
///
/// Messages and fields never carry a password: drivers hand in text that was checked for it.
///
/// ```
/// use fencelock::{Code, Error};
/// let error = Error::new(Code::Timeout, "the lock was not granted in time").with("name", "orders:42");
/// assert_eq!(error.to_string(), "timeout: the lock was not granted in time (name: orders:42)");
/// assert!(error.retryable());
/// ```
#[derive(Clone, Debug)]
pub struct Error {
    code: Code,
    message: Cow<'static, str>,
    retryable: bool,
    fields: BTreeMap<&'static str, String>,
    source: Option<std::sync::Arc<dyn std::error::Error + Send + Sync>>,
    /// Whether a wait ended because somebody else had the lock.
    is_held: bool,
}

impl Error {
    /// Makes an error. It counts as retryable when its code is `timeout` or `unavailable`.
    pub fn new(code: Code, message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            code,
            message: message.into(),
            retryable: matches!(code, Code::Timeout | Code::Unavailable),
            fields: BTreeMap::new(),
            source: None,
            is_held: false,
        }
    }

    /// A wait that ended because somebody else had the lock; nothing is wrong with the store.
    pub(crate) fn held(message: impl Into<Cow<'static, str>>) -> Self {
        Self { is_held: true, ..Self::new(Code::Timeout, message) }
    }

    /// Whether it is such a wait.
    pub(crate) fn is_held(&self) -> bool {
        self.is_held
    }

    /// Adds a fact, such as the lock's name.
    pub fn with(mut self, field: &'static str, value: impl Into<String>) -> Self {
        self.fields.insert(field, value.into());
        self
    }

    /// Says whether the same call may succeed later, against the code's own rule.
    pub fn with_retryable(mut self, retryable: bool) -> Self {
        self.retryable = retryable;
        self
    }

    /// Keeps the error this one was made from.
    pub fn with_source(mut self, source: impl std::error::Error + Send + Sync + 'static) -> Self {
        self.source = Some(std::sync::Arc::new(source));
        self
    }

    /// The stable kind.
    pub fn code(&self) -> Code {
        self.code
    }

    /// The error and the remedy in words, without code and fields.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The message with the facts behind it, for people: `the lock was not granted in time (name: orders:42)`. The message of
    /// the exceptions of other languages.
    pub fn text(&self) -> String {
        let facts: Vec<_> =
            self.fields.iter().map(|(name, value)| format!("{name}: {value}")).collect();
        if facts.is_empty() {
            return self.message.clone().into_owned();
        }
        format!("{} ({})", self.message, facts.join(", "))
    }

    /// Whether the same call may succeed later.
    pub fn retryable(&self) -> bool {
        self.retryable
    }

    /// The facts, by name.
    pub fn fields(&self) -> &BTreeMap<&'static str, String> {
        &self.fields
    }

    pub(crate) fn invalid(what: &'static str, message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Code::Invalid, message).with("argument", what)
    }

    #[cfg(any(feature = "tokio", feature = "host"))]
    pub(crate) fn not_built(feature: &'static str) -> Self {
        let message = "this build has no driver for that store; enable its cargo feature";
        Self::new(Code::Unsupported, message).with("feature", feature)
    }

    pub(crate) fn no_cells() -> Self {
        let message = "this store keeps no values with versions, which jobs and versions need; a quorum has none: use Redis under one master or as a cluster, etcd, ZooKeeper, PostgreSQL, SQLite or memory";
        Self::new(Code::Unsupported, message)
    }

    pub(crate) fn not_held() -> Self {
        Self::new(Code::NotHeld, "this guard was given back before; acquire the lock again")
    }

    pub(crate) fn refused_by_gate() -> Self {
        let message =
            "the write was refused: a newer holder has written since; acquire the lock again";
        Self::new(Code::Lost, message)
    }

    pub(crate) fn closed() -> Self {
        Self::new(Code::Closed, "this client was closed; connect again")
    }

    /// For whoever uses in the child of a fork what its parent has made.
    pub(crate) fn forked() -> Self {
        Self::new(
            Code::Closed,
            "this belongs to the process that forked this one; connect again here",
        )
    }

    pub(crate) fn internal(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Code::Internal, message)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.text())
    }
}

/// As other languages get it: code, message with the facts, whether it may be tried again, and the facts by name.
impl Serialize for Error {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("code", &self.code)?;
        map.serialize_entry("message", &self.text())?;
        map.serialize_entry("retryable", &self.retryable)?;
        if !self.fields.is_empty() {
            map.serialize_entry("fields", &self.fields)?;
        }
        map.end()
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_ref().map(|source| &**source as &(dyn std::error::Error + 'static))
    }
}
