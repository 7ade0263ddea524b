//! The operations that a binding can ask for.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use crate::elect::Seen;
use crate::error::{Code, Error, Result};
use crate::job::Schedule;
use crate::port::Mode;
use crate::released::Released;

/// As what a lock is asked for: a mutex, unless more is said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Form {
    /// How it is to be held.
    #[serde(default)]
    pub mode: Mode,
    /// Of how many permits, for the mode `permit`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub permits: Option<i64>,
    /// The scope that may enter a mutex again: a number from [`Facade::open_scope`](super::Facade::open_scope).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<u64>,
}

/// Something a binding asks for. Times are in milliseconds.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Operation {
    /// Wait for a lock. Completes with a [`Granted`].
    Acquire {
        /// The lock.
        name: String,
        /// As what it is asked for.
        #[serde(flatten)]
        form: Form,
        /// Options by name.
        #[serde(default)]
        options: Map<String, Value>,
    },
    /// Ask once, or wait as long as `wait` says. Completes with a [`Granted`] or null.
    TryAcquire {
        /// The lock.
        name: String,
        /// As what it is asked for.
        #[serde(flatten)]
        form: Form,
        /// Options by name.
        #[serde(default)]
        options: Map<String, Value>,
        /// How long to wait, as the option of that name.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        wait: Option<Value>,
    },
    /// Wait for several mutexes as one. Completes with a [`Granted`].
    AcquireAll {
        /// The locks.
        names: Vec<String>,
        /// Options by name.
        #[serde(default)]
        options: Map<String, Value>,
    },
    /// Ask once for several mutexes, or wait as long as `wait` says. Completes with a [`Granted`] or null.
    TryAcquireAll {
        /// The locks.
        names: Vec<String>,
        /// Options by name.
        #[serde(default)]
        options: Map<String, Value>,
        /// How long to wait, as the option of that name.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        wait: Option<Value>,
    },
    /// Give a guard back. Completes with a [`Released`](crate::Released).
    Release {
        /// The guard's number.
        guard: u64,
        /// Of a run of a job: whether it has succeeded.
        #[serde(default)]
        succeeded: bool,
    },
    /// Let another process go on with a guard's hold. Completes with the text for it.
    Transfer {
        /// The guard's number.
        guard: u64,
    },
    /// Go on with a hold that another process has let go of. Completes with a [`Granted`].
    Adopt {
        /// The text.
        text: String,
    },
    /// Push the end of a guard's lease. Completes with null.
    Extend {
        /// The guard's number.
        guard: u64,
        /// The lease from now on, in milliseconds.
        ttl: f64,
    },
    /// Completes with null when the guard is lost, with the error `not_held` when it was given back before that.
    Lost {
        /// The guard's number.
        guard: u64,
    },
    /// Show the holders of a lock and its waiters. Completes with the state.
    Inspect {
        /// The lock.
        name: String,
        /// Options by name.
        #[serde(default)]
        options: Map<String, Value>,
    },
    /// Whether anybody holds a lock. Completes with a boolean.
    IsLocked {
        /// The lock.
        name: String,
        /// As what it is asked for.
        #[serde(flatten)]
        form: Form,
        /// Options by name.
        #[serde(default)]
        options: Map<String, Value>,
    },
    /// End the holds of a lock, or those with a token. Completes with a list of holders.
    BreakLock {
        /// The lock.
        name: String,
        /// Why, for events and logs.
        reason: String,
        /// Of which holds; without it, all.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        token: Option<u64>,
    },
    /// Write a key on the client's Redis server, unless a newer token has written it. Completes with null, whether the key was
    /// there, or the sum.
    Gate {
        /// The key.
        resource: String,
        /// The token to write with.
        token: u64,
        /// The write: set, delete or increment.
        write: GateWrite,
    },
    /// Ask the store for nothing. Completes with the time that took, in milliseconds.
    Ping,
    /// The names of the locks the store knows. Completes with a list.
    Names {
        /// How they begin.
        prefix: String,
    },
    /// Disconnect. Completes with null.
    Close,
    /// The value and its version. Completes with `{"value", "version"}` or null.
    ReadVersion {
        /// Its name.
        name: String,
        /// Options by name.
        #[serde(default)]
        options: Map<String, Value>,
    },
    /// Write if the version is the one expected. Completes with `{"done": version}`, or `{"changed": what is there}`.
    CompareAndSet {
        /// Its name.
        name: String,
        /// Options by name.
        #[serde(default)]
        options: Map<String, Value>,
        /// The version; without it there must be no value.
        #[serde(default)]
        expected: Option<u64>,
        /// The new value.
        value: Value,
    },
    /// Delete if the version is the one expected. Completes as [`Operation::CompareAndSet`].
    DeleteVersion {
        /// Its name.
        name: String,
        /// Options by name.
        #[serde(default)]
        options: Map<String, Value>,
        /// The version.
        expected: u64,
    },
    /// Pause an update after so many tries that came too late: completes with null after a short random pause, or
    /// with the error `conflict` when there were too many.
    BackOff {
        /// The value's name.
        name: String,
        /// Options by name.
        #[serde(default)]
        options: Map<String, Value>,
        /// How often it was tried.
        tries: u32,
    },
    /// Start the run that is due. Completes with a [`Granted`] or `{"skipped"}`: a [`Skipped`](crate::Skipped).
    StartJob {
        /// The job.
        name: String,
        /// Its times.
        #[serde(flatten)]
        times: JobTimes,
        /// The scheduler's own instant, since 1970.
        #[serde(default)]
        at: Option<f64>,
        /// Options by name.
        #[serde(default)]
        options: Map<String, Value>,
    },
    /// The last run. Completes with a [`JobState`](crate::JobState) or null.
    InspectJob {
        /// The job.
        name: String,
    },
    /// Wait until this candidate leads. Completes with a [`Granted`].
    Campaign {
        /// The election.
        name: String,
        /// Options by name.
        #[serde(default)]
        options: Map<String, Value>,
    },
    /// Lead if nobody else does. Completes with a [`Granted`] or null.
    TryCampaign {
        /// The election.
        name: String,
        /// Options by name.
        #[serde(default)]
        options: Map<String, Value>,
        /// How long to wait, as the option of that name.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        wait: Option<Value>,
    },
    /// Name the leader. Completes with a [`Leader`](crate::Leader) or null.
    Leader {
        /// The election.
        name: String,
        /// Options by name.
        #[serde(default)]
        options: Map<String, Value>,
    },
    /// Wait until another one leads than the one who was seen last. Completes with a [`Leader`](crate::Leader) or null.
    Observe {
        /// The election.
        name: String,
        /// Options by name.
        #[serde(default)]
        options: Map<String, Value>,
        /// The result of the last one; without it, the answer comes at once.
        #[serde(default, deserialize_with = "given")]
        seen: Seen,
    },
}

/// The times at which a job is due, as the languages say them: a period in milliseconds, or a cron expression and its time zone.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct JobTimes {
    /// The period.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub period: Option<f64>,
    /// The cron expression.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cron: Option<String>,
    /// Its time zone; UTC without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timezone: Option<String>,
}

impl JobTimes {
    /// The schedule, if exactly one is given.
    pub fn schedule(&self) -> Result<Schedule> {
        let schedule = match (self.period, &self.cron) {
            (Some(period), None) => Schedule::from(time(period)),
            (None, Some(cron)) => Schedule::cron(cron),
            (Some(_), Some(_)) => {
                let message = "`period` and `cron` are both given; leave one out: `cron` names times of day, `0 3 * * *` for instance";
                return Err(Error::invalid("cron", message));
            }
            (None, None) => {
                let message = "a job needs a `period`, 3600 s for instance, or a `cron` expression such as `0 3 * * *`";
                return Err(Error::invalid("period", message));
            }
        };
        Ok(match &self.timezone {
            Some(zone) => schedule.timezone(zone),
            None => schedule,
        })
    }
}

/// A time in milliseconds. One that is none is refused as zero.
pub(super) fn time(millis: f64) -> Duration {
    Duration::try_from_secs_f64(millis / 1000.0).unwrap_or_default()
}

/// A write through a gate.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GateWrite {
    /// Set the key to a text.
    Set(String),
    /// Delete the key.
    Delete,
    /// Add to a whole number.
    Increment(i64),
}

impl Operation {
    /// Reads an operation that a binding hands over as JSON text.
    pub fn read(text: &str) -> Result<Self> {
        let value = || serde_json::from_str(text).unwrap_or_default();
        serde_json::from_str(text).map_err(|error| Self::unreadable(&error, &value()))
    }

    /// The same for a binding whose values are not text.
    pub fn of(value: &Value) -> Result<Self> {
        Self::deserialize(value).map_err(|error| Self::unreadable(&error, value))
    }

    /// Whether it completes with a guard, or a run, that was nobody's before; or with null, or why not, instead.
    pub fn grants(&self) -> bool {
        matches!(
            self,
            Self::Acquire { .. }
                | Self::TryAcquire { .. }
                | Self::AcquireAll { .. }
                | Self::TryAcquireAll { .. }
                | Self::Adopt { .. }
                | Self::StartJob { .. }
                | Self::Campaign { .. }
                | Self::TryCampaign { .. }
        )
    }

    fn unreadable(error: &serde_json::Error, operation: &Value) -> Error {
        let nameless = error.to_string().contains("missing field `name`");
        let missing = || nameless.then_some((ARGUMENTS[0].0, ARGUMENTS[0].1));
        if let Some((argument, wanted)) = mistyped(operation).or_else(missing) {
            return Error::invalid(argument, format!("`{argument}` must be {wanted}"));
        }
        let message = format!("this operation cannot be read: {error}");
        Error::new(Code::Invalid, message).with("argument", "operation")
    }
}

/// Whether a value is what an argument must be.
type Fits = fn(&Value) -> bool;

/// Arguments, what each must be, and whether a value is that.
const ARGUMENTS: &[(&str, &str, Fits)] = &[
    ("name", "a text of 1 to 512 bytes", Value::is_string),
    ("names", "a list of texts", |value| {
        value.as_array().is_some_and(|all| all.iter().all(Value::is_string))
    }),
    ("reason", "a text", Value::is_string),
    ("key", "a text", Value::is_string),
    ("prefix", "a text", Value::is_string),
    ("text", "a text", Value::is_string),
    ("ttl", "a number", Value::is_number),
    ("token", "a token, as guards have it", |value| value.is_u64() || value.is_null()),
    ("permits", "a whole number", |value| value.is_i64() || value.is_null()),
    ("resource", "a text: the key on the server", Value::is_string),
    ("write", "a text to set, or a whole number to add", |value| {
        GateWrite::deserialize(value).is_ok()
    }),
    ("period", "a number", |value| value.is_number() || value.is_null()),
    ("at", "a number", |value| value.is_number() || value.is_null()),
    ("cron", "a text", |value| value.is_string() || value.is_null()),
    ("timezone", "a text", |value| value.is_string() || value.is_null()),
];

/// The first argument that is not what it must be, and what that is.
fn mistyped(operation: &Value) -> Option<(&'static str, &'static str)> {
    let wrong = |(argument, _, fits): &&(&str, &str, Fits)| {
        operation.get(argument).is_some_and(|value| !fits(value))
    };
    ARGUMENTS.iter().find(wrong).map(|(argument, wanted, _)| (*argument, *wanted))
}

/// Null is a value here: nobody leads.
fn given<'de, D: Deserializer<'de>>(from: D) -> Result<Seen, D::Error> {
    Option::deserialize(from).map(Some)
}

/// The result of an operation. As JSON it is the value inside.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Answer {
    /// A guard or a run.
    Granted(Granted),
    /// How a guard was given back.
    Released(Released),
    /// Anything else.
    Value(Value),
}

impl Answer {
    /// The grant, if it is one.
    pub fn granted(self) -> Option<Granted> {
        match self {
            Self::Granted(granted) => Some(granted),
            Self::Released(_) | Self::Value(_) => None,
        }
    }
}

/// The result of an acquire, a start or a campaign.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Granted {
    /// The guard's number, for release, extend and lost.
    pub guard: u64,
    /// The fencing token; of several as one, that of the first in the order of the names.
    pub token: u64,
    /// Of a hold that was adopted: the lock's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Of several as one: the token of each, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tokens: BTreeMap<String, u64>,
    /// Of a job's run: its scheduled instant, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instant: Option<f64>,
}
