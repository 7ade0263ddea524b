//! Steps on guards, as they stand in YAML.

use fencelock::facade::GateWrite;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::step::{Expect, Name};

/// A step on a guard.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GuardStep {
    /// The guard.
    pub guard: String,
    /// Of a run: whether it has succeeded.
    pub succeeded: Option<bool>,
    /// The expected result.
    pub expect: Option<Expect>,
}

/// See [`super::step::Step::Transfer`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Transfer {
    /// The guard.
    pub guard: String,
    /// The actor that adopts.
    pub to: String,
    /// The name of its guard.
    pub r#as: String,
}

/// See [`super::step::Step::Extend`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Extend {
    /// The guard.
    pub guard: String,
    /// The lease from now on, in milliseconds.
    pub ttl: f64,
    /// The expected result.
    pub expect: Option<Expect>,
}

/// See [`super::step::Step::Break`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Break {
    /// The actor that breaks.
    pub by: String,
    /// The lock; `x` by default.
    #[serde(default)]
    pub lock: Name,
    /// Only the holds with this guard's token.
    pub token_of: Option<String>,
    /// The guards whose holds are answered as broken, in the order of their tokens.
    #[serde(default)]
    pub broken: Vec<String>,
    /// The expected result.
    pub expect: Option<Expect>,
}

/// See [`super::step::Step::Gate`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gate {
    /// The actor that writes.
    pub by: String,
    /// The key; `x` by default.
    #[serde(default)]
    pub key: Name,
    /// The guard whose token it writes with.
    pub token_of: String,
    /// The write: set, delete or increment.
    pub write: GateWrite,
    /// The expected answer.
    #[serde(default)]
    pub is: Value,
    /// The expected result.
    pub expect: Option<Expect>,
}

/// See [`super::step::Step::Held`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Held {
    /// The guard.
    pub guard: String,
    /// Whether.
    pub is: bool,
}

/// See [`super::step::Step::Remaining`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Remaining {
    /// The guard.
    pub guard: String,
    /// At least.
    pub from: f64,
    /// At most.
    pub to: f64,
}

/// See [`super::step::Step::Lost`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lost {
    /// The guard.
    pub guard: String,
    /// Milliseconds.
    pub within: u64,
}
