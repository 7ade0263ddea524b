//! The steps of a case about versions, jobs and elections, as they stand in YAML.

use fencelock::facade::JobTimes;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::step::{Expect, Name};
use crate::protocol::Options;

/// Which run of a job is asked for.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RunOf {
    /// The times of the job.
    #[serde(flatten)]
    pub times: JobTimes,
    /// The scheduler's own instant, in milliseconds since 1970.
    pub at: Option<f64>,
}

/// How the last run of a job stands. What is not given is not looked at.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JobStep {
    /// The actor that looks.
    pub by: String,
    /// The job; `x` by default.
    #[serde(default)]
    pub lock: Name,
    /// `succeeded`, `failed`, `in_progress`, or `none` if there was no run.
    pub status: Option<String>,
    /// Whether it counts as dead.
    pub dead: Option<bool>,
    /// The run it is.
    pub is: Option<String>,
    /// It need not be so at once, but within so many milliseconds.
    pub within: Option<u64>,
}

/// The leader of an election.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LeaderStep {
    /// The actor that looks.
    pub by: String,
    /// The election; `x` by default.
    #[serde(default)]
    pub lock: Name,
    /// `nobody`, or a guard.
    pub is: String,
}

/// Another one leads than before.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Observe {
    /// The actor that observes.
    pub by: String,
    /// The election; `x` by default.
    #[serde(default)]
    pub lock: Name,
    /// How it is observed.
    #[serde(default)]
    pub options: Options,
    /// The leader before: `nobody`, or a guard.
    pub after: String,
    /// The leader after that.
    pub is: String,
    /// Milliseconds.
    pub within: u64,
}

/// A value with a version.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ValueStep {
    /// The actor that reads.
    pub by: String,
    /// The value's name; `x` by default.
    #[serde(default)]
    pub lock: Name,
    /// The expected value; null: there is none.
    pub is: Value,
    /// The name of its version in later steps.
    pub r#as: Option<String>,
}

/// Writes a value, or deletes it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Write {
    /// The actor that writes.
    pub by: String,
    /// The value's name; `x` by default.
    #[serde(default)]
    pub lock: Name,
    /// Its options.
    #[serde(default)]
    pub options: Options,
    /// The version that is expected; without it there must be no value.
    pub over: Option<String>,
    /// The value to write; without it, the value is deleted.
    pub value: Option<Value>,
    /// The name of the version that was made, in later steps.
    pub r#as: Option<String>,
    /// Whether somebody was faster, so that nothing is written.
    #[serde(default)]
    pub late: bool,
    /// Any other result that is expected.
    pub expect: Option<Expect>,
}

/// Adds to a number.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Update {
    /// The actor that adds; `any`: the next actor.
    pub by: String,
    /// The value's name; `x` by default.
    #[serde(default)]
    pub lock: Name,
    /// Its options.
    #[serde(default)]
    pub options: Options,
    /// How much.
    pub add: i64,
    /// The expected result; `none`: nothing is written, because the number would be negative.
    pub expect: Option<Expect>,
}
