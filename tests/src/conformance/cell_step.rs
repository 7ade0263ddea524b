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
    /// Who looks.
    pub by: String,
    /// The job; `x` by default.
    #[serde(default)]
    pub lock: Name,
    /// `S`, `F`, `P`, or `none` if there was no run.
    pub status: Option<String>,
    /// Whether it counts as dead.
    pub dead: Option<bool>,
    /// The run it is.
    pub is: Option<String>,
    /// It need not be so at once, but within so many milliseconds.
    pub within: Option<u64>,
}

/// Who leads in an election.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LeaderStep {
    /// Who looks.
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
    /// Who observes.
    pub by: String,
    /// The election; `x` by default.
    #[serde(default)]
    pub lock: Name,
    /// How it is observed.
    #[serde(default)]
    pub options: Options,
    /// Who led before: `nobody`, or a guard.
    pub after: String,
    /// Who leads then.
    pub is: String,
    /// Milliseconds.
    pub within: u64,
}

/// A value with a version.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ValueStep {
    /// Who reads.
    pub by: String,
    /// The value's name; `x` by default.
    #[serde(default)]
    pub lock: Name,
    /// What it is; null: there is none.
    pub is: Value,
    /// What later steps call its version.
    pub r#as: Option<String>,
}

/// Writes a value, or deletes it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Write {
    /// Who writes.
    pub by: String,
    /// The value's name; `x` by default.
    #[serde(default)]
    pub lock: Name,
    /// Its options.
    #[serde(default)]
    pub options: Options,
    /// The version that is expected; without it there must be no value.
    pub over: Option<String>,
    /// What is written; without it, the value is deleted.
    pub value: Option<Value>,
    /// What later steps call the version that was made.
    pub r#as: Option<String>,
    /// Whether somebody was faster, so that nothing is written.
    #[serde(default)]
    pub late: bool,
    /// What else it must come to.
    pub expect: Option<Expect>,
}

/// Adds to a number.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Update {
    /// Who adds; `any`: the next actor.
    pub by: String,
    /// The value's name; `x` by default.
    #[serde(default)]
    pub lock: Name,
    /// Its options.
    #[serde(default)]
    pub options: Options,
    /// How much.
    pub add: i64,
    /// What it must come to; `none`: nothing is written, because the number would be negative.
    pub expect: Option<Expect>,
}
