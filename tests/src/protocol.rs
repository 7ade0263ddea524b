//! The words between the conformance engine and its actors: JSON lines, as `tests/README.md` tells.

use std::collections::BTreeMap;

use fencelock::facade::{GateWrite, JobTimes};
use fencelock::port::Mode;
use fencelock::{Code, Error};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Options by name; times in milliseconds.
pub type Options = Map<String, Value>;

/// One line to an actor.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Request {
    /// The number that the answer will carry.
    pub id: u64,
    /// The operation that is asked for.
    #[serde(flatten)]
    pub call: Call,
}

/// The operations that an actor can be asked for. The README describes the answer to each.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case", deny_unknown_fields)]
pub enum Call {
    /// Say who you are.
    Ping,
    /// Connect to a store; a client there was before is dropped.
    Connect {
        /// The store.
        url: String,
        /// Options of the client and defaults of its locks.
        #[serde(default)]
        options: Options,
    },
    /// Wait for a lock.
    Acquire {
        /// The lock.
        lock: String,
        /// How it is to be held: a mutex, unless more is said.
        #[serde(default, skip_serializing_if = "is_plain")]
        mode: Mode,
        /// Of how many permits, for the mode `permit`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        permits: Option<i64>,
        /// The scope, by a name of the case's, that may enter a mutex again.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        scope: Option<String>,
        /// Its options.
        #[serde(default)]
        options: Options,
    },
    /// Ask for a lock once, or for as long as `wait` says.
    Try {
        /// The lock.
        lock: String,
        /// How it is to be held: a mutex, unless more is said.
        #[serde(default, skip_serializing_if = "is_plain")]
        mode: Mode,
        /// Of how many permits, for the mode `permit`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        permits: Option<i64>,
        /// The scope, by a name of the case's, that may enter a mutex again.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        scope: Option<String>,
        /// Its options.
        #[serde(default)]
        options: Options,
        /// How long to wait, in milliseconds.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        wait: Option<f64>,
    },
    /// Wait for several mutexes as one.
    AcquireAll {
        /// The locks.
        locks: Vec<String>,
        /// Their options.
        #[serde(default)]
        options: Options,
    },
    /// Ask for several mutexes once, or for as long as `wait` says.
    TryAll {
        /// The locks.
        locks: Vec<String>,
        /// Their options.
        #[serde(default)]
        options: Options,
        /// How long to wait, in milliseconds.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        wait: Option<f64>,
    },
    /// Run a body under a lock: it does nothing for `work` milliseconds.
    With {
        /// The lock.
        lock: String,
        /// Its options.
        #[serde(default)]
        options: Options,
        /// How long the body takes.
        work: f64,
    },
    /// Give up the request of this id.
    Abort {
        /// An `acquire`, `try` or `with` that may or may not be answered yet.
        target: u64,
    },
    /// Give a guard back and wait for the answer.
    Release {
        /// The guard.
        guard: u64,
    },
    /// Let another process go on with a guard's hold.
    Transfer {
        /// The guard.
        guard: u64,
    },
    /// Go on with a hold that another process has let go of.
    Adopt {
        /// The text.
        text: String,
    },
    /// Forget a guard, as a collector of garbage would.
    Drop {
        /// The guard.
        guard: u64,
    },
    /// Push the end of a guard's lease.
    Extend {
        /// The guard.
        guard: u64,
        /// The lease from now on.
        ttl: f64,
    },
    /// Whether a guard may be relied on.
    IsHeld {
        /// The guard.
        guard: u64,
    },
    /// For how long a guard may be relied on.
    Remaining {
        /// The guard.
        guard: u64,
    },
    /// A guard's fencing token.
    Token {
        /// The guard.
        guard: u64,
    },
    /// Send an event when the guard is lost.
    Lost {
        /// The guard.
        guard: u64,
    },
    /// The holders and the waiters of a lock.
    Inspect {
        /// The lock.
        lock: String,
        /// Its options, the dialect above all.
        #[serde(default)]
        options: Options,
    },
    /// Wait until this candidate leads.
    Campaign {
        /// The election.
        lock: String,
        /// Its options.
        #[serde(default)]
        options: Options,
    },
    /// Lead if nobody else does.
    TryCampaign {
        /// The election.
        lock: String,
        /// Its options.
        #[serde(default)]
        options: Options,
    },
    /// The leader of an election.
    Leader {
        /// The election.
        lock: String,
    },
    /// Wait until another one leads.
    Observe {
        /// The election.
        lock: String,
        /// Its options.
        #[serde(default)]
        options: Options,
        /// The answer to the last `leader` or `observe`.
        seen: Value,
    },
    /// Start the run of a job that is due.
    StartJob {
        /// The job.
        lock: String,
        /// Its options.
        #[serde(default)]
        options: Options,
        /// Its times.
        #[serde(flatten)]
        times: Box<JobTimes>,
        /// The scheduler's own instant.
        #[serde(default)]
        at: Option<f64>,
    },
    /// Say how a run ended.
    EndJob {
        /// The run.
        guard: u64,
        /// Whether it has succeeded.
        succeeded: bool,
    },
    /// The last run of a job.
    InspectJob {
        /// The job.
        lock: String,
    },
    /// A value and its version.
    ReadVersion {
        /// The value's name.
        lock: String,
    },
    /// Write a value if its version is the one expected.
    CompareAndSet {
        /// The value's name.
        lock: String,
        /// Its options.
        #[serde(default)]
        options: Options,
        /// The version; null: there must be no value.
        expected: Option<u64>,
        /// The new value.
        value: Value,
    },
    /// Delete a value if its version is the one expected.
    DeleteVersion {
        /// The value's name.
        lock: String,
        /// Its options.
        #[serde(default)]
        options: Options,
        /// The version.
        expected: u64,
    },
    /// Add to a number, as often as it takes.
    Update {
        /// The value's name.
        lock: String,
        /// Its options.
        #[serde(default)]
        options: Options,
        /// How much.
        add: i64,
    },
    /// Whether anybody holds a lock.
    IsLocked {
        /// The lock.
        lock: String,
    },
    /// End the holds of a lock, or those with a token.
    BreakLock {
        /// The lock.
        lock: String,
        /// Why.
        reason: String,
        /// Of which holds.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        token: Option<u64>,
    },
    /// Write a key on the Redis server, with a token.
    Gate {
        /// The key.
        resource: String,
        /// The token.
        token: u64,
        /// The write: set, delete or increment.
        write: GateWrite,
    },
    /// Ask the store for nothing.
    PingStore,
    /// The names of the locks the store knows.
    Names {
        /// How they begin.
        prefix: String,
    },
    /// The numbers of operations, guards and locks that the client carries.
    Load,
    /// Disconnect.
    Close,
    /// Neither read requests nor look at what is complete for so many milliseconds.
    Busy {
        /// How long.
        time: f64,
    },
    /// Exit at once, with nothing cleaned up.
    Crash,
}

/// Says nothing: actors that know mutexes only need not know the word.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes it so")]
fn is_plain(mode: &Mode) -> bool {
    *mode == Mode::default()
}

/// One line from an actor.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Message {
    /// To a request.
    Answer(Answer),
    /// On its own account.
    Event(Event),
}

/// The one answer to a request.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Answer {
    /// The request's.
    pub id: u64,
    /// How it ended.
    #[serde(flatten)]
    pub end: End,
}

/// How a request ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// Well.
    Ok(Value),
    /// With an error.
    Error(Refusal),
}

/// An error as every language tells it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// The stable code.
    pub code: Code,
    /// The text that says what happened and what to do.
    pub message: String,
    /// Whether the same may succeed later.
    pub retryable: bool,
    /// The facts.
    #[serde(default)]
    pub fields: BTreeMap<String, String>,
}

/// The events that an actor reports without being asked again.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// A guard was lost.
    Lost {
        /// The guard.
        guard: u64,
    },
}

/// The answer to `acquire` and to a successful `try`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// The guard.
    pub guard: u64,
    /// Its fencing token.
    pub token: u64,
}

impl From<&Error> for Refusal {
    fn from(error: &Error) -> Self {
        let fields = error.fields().iter();
        Self {
            code: error.code(),
            message: error.message().to_owned(),
            retryable: error.retryable(),
            fields: fields.map(|(name, value)| ((*name).to_owned(), value.clone())).collect(),
        }
    }
}

impl From<fencelock::Result<Value>> for End {
    fn from(result: fencelock::Result<Value>) -> Self {
        match result {
            Ok(value) => Self::Ok(value),
            Err(error) => Self::Error(Refusal::from(&error)),
        }
    }
}
