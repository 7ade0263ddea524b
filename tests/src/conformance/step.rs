//! The steps of a case, as they stand in YAML.

use std::collections::BTreeMap;

use fencelock::port::Mode;
use fencelock::{Code, Reason};
use serde::{Deserialize, Serialize};

pub use super::cell_step::{JobStep, LeaderStep, Observe, RunOf, Update, ValueStep, Write};
pub use super::guard_step::{Break, Extend, Gate, GuardStep, Held, Lost, Remaining, Transfer};
use crate::protocol::Options;

/// One step.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// Acquires and waits for the end; `granted` is expected.
    Acquire(Ask),
    /// Tries once; `granted` is expected.
    Try(Ask),
    /// Begins an acquire, or with `work` a `with`, and goes on.
    Start(Ask),
    /// Waits for the end of what was started; `granted` is expected.
    Await(Await),
    /// These have not ended yet.
    Pending(Vec<String>),
    /// Gives up what was started.
    Abort(String),
    /// Gives a guard back; `released` is expected.
    Release(GuardStep),
    /// Another actor goes on with a hold, once.
    Transfer(Transfer),
    /// Forgets a guard.
    Drop(String),
    /// Pushes the end of a lease; `done` is expected.
    Extend(Extend),
    /// Whether a guard may be relied on at this moment.
    Held(Held),
    /// For how long a guard may be relied on, in milliseconds from .. to.
    Remaining(Remaining),
    /// The guard is told to be lost within so many milliseconds from now.
    Lost(Lost),
    /// How the lock looks from outside.
    State(State),
    /// How the last run of a job stands.
    Job(JobStep),
    /// The leader of an election.
    Leader(LeaderStep),
    /// Another one leads than before.
    Observe(Observe),
    /// The value with a version.
    Value(ValueStep),
    /// Writes a value, or deletes it.
    Write(Write),
    /// Adds to a number; `done` is expected.
    Update(Update),
    /// Whether anybody holds a lock.
    Locked(Locked),
    /// Ends the holds of a lock; `done` is expected.
    Break(Break),
    /// Writes a key through a gate; `done` is expected.
    Gate(Gate),
    /// This actor's client asks its store for nothing, and is told how long that took.
    PingStore(String),
    /// The names of the locks, without the case's own prefix.
    Names(Names),
    /// Connects an actor; `done` is expected.
    Connect(Connect),
    /// Connects an actor and tries to get a lock: one of both is refused like this.
    Reach(Reach),
    /// Disconnects an actor in good order.
    Close(String),
    /// An actor's host is busy: it neither reads nor drains for so long. The engine does not wait for it.
    Busy(Busy),
    /// Ends an actor's input: it gives everything back and leaves.
    Leave(String),
    /// Ends an actor as `kill -9` does.
    Kill(String),
    /// Has an actor end itself with nothing cleaned up.
    Crash(String),
    /// Freezes an actor.
    Stop(String),
    /// Lets a frozen actor go on.
    Resume(String),
    /// Waits so many milliseconds.
    Sleep(u64),
    /// The tokens of these guards rise in this order.
    Rising(Vec<String>),
    /// A raw command to the store as somebody else; `$x` at the end of a word, or before a brace, is the name of lock `x`.
    Redis(Redis),
    /// Statements of SQL as the owner of the database; `$x` is the name of lock `x`.
    Sql(Sql),
    /// Something happens to the server.
    Server(Server),
    /// Somebody takes this lock away on the store: deletes what is stored of it, or ends the session it lives with.
    TakeAway(Name),
    /// So many branches run these steps at once, each with names of its own; `{n}` is the branch's number and `any` the
    /// next actor.
    Parallel(Times),
    /// These steps, again and again.
    Repeat(Times),
    /// Reads a shared number, takes its time, and writes one more: exact only under exclusion.
    Add(String),
    /// A shared number is exactly this.
    Tally(Tally),
}

/// A lock's name in a case.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Name {
    /// Behind the prefix that makes it the case's own.
    Own(String),
    /// Exactly this.
    Exact {
        /// The name.
        exact: String,
    },
    /// Behind the prefix, and filled up to so many bytes.
    Filled {
        /// The length of the whole.
        bytes: usize,
        /// With what.
        of: String,
    },
}

impl Default for Name {
    fn default() -> Self {
        Self::Own("x".to_owned())
    }
}

/// The expected result of a step.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Expect {
    /// With a guard.
    Granted,
    /// With a guard of another library, which has no token.
    Taken,
    /// Without one: the lock is somebody else's.
    None,
    /// Without a run, for this reason.
    Skipped(Reason),
    /// The release found the lock held.
    Released,
    /// The release found it lost.
    AlreadyLost,
    /// The release was not answered.
    Unconfirmed,
    /// Well, whatever the value.
    Done,
    /// With an error.
    Error(Trouble),
    /// Given up: `cancelled`, or, if the grant was on its way already, a guard that is then dropped.
    GivenUp,
}

/// An error that is expected.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trouble {
    /// Its code.
    pub code: Code,
    /// Part of its message.
    pub says: Option<String>,
    /// Its fields, each with a part of its value.
    #[serde(default)]
    pub fields: BTreeMap<String, String>,
    /// Whether the same may succeed later.
    pub retryable: Option<bool>,
}

/// An acquire of any kind.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ask {
    /// The actor; `any` is the next one of all, `a b` the next one of these.
    pub by: String,
    /// The name for it in later steps.
    pub r#as: Option<String>,
    /// The lock; `x` by default.
    #[serde(default)]
    pub lock: Name,
    /// Several mutexes as one instead.
    #[serde(default)]
    pub all: Vec<Name>,
    /// How it is to be held: a mutex, unless more is said.
    #[serde(default)]
    pub mode: Mode,
    /// Of how many permits, for the mode `permit`.
    pub permits: Option<i64>,
    /// The scope that may enter a mutex again.
    pub scope: Option<String>,
    /// Its options.
    #[serde(default)]
    pub options: Options,
    /// Run a body of so many milliseconds under it.
    pub work: Option<u64>,
    /// Campaign in the election of this name instead.
    #[serde(default)]
    pub elect: bool,
    /// Start a run of the job of this name instead.
    pub job: Option<RunOf>,
    /// A `try` waits for so many milliseconds at most.
    pub patience: Option<u64>,
    /// The expected result.
    pub expect: Option<Expect>,
    /// Milliseconds from the asking to the end, at least and at most.
    pub took: Option<(u64, u64)>,
}

/// The end of what was started.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Await {
    /// The name of the operation that was started.
    pub what: String,
    /// The expected result.
    pub expect: Option<Expect>,
    /// Milliseconds from the beginning of this step.
    pub within: Option<u64>,
    /// Milliseconds from the asking to the end, at least and at most.
    pub took: Option<(u64, u64)>,
    /// It ends so many milliseconds at least after another was asked for, however slowly that was told.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub after: BTreeMap<String, u64>,
}

/// See [`Step::State`]. What is not given is not looked at.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// The actor that looks; the first one that lives by default.
    pub by: Option<String>,
    /// The lock; `x` by default.
    #[serde(default)]
    pub lock: Name,
    /// The lock's options, its dialect above all.
    #[serde(default)]
    pub options: Options,
    /// `nobody`, `somebody`, `foreign`, or a guard.
    pub holder: Option<String>,
    /// How many wait.
    pub waiters: Option<usize>,
    /// How those who hold it hold it, the oldest first.
    pub modes: Option<Vec<Mode>>,
    /// The infos of those who wait, head first.
    pub infos: Option<Vec<String>>,
    /// The fields with which the holder describes itself, by name.
    #[serde(default)]
    pub info: BTreeMap<String, String>,
    /// Milliseconds left of the lease, at least and at most.
    pub left: Option<(u64, u64)>,
    /// Whether the lease has no end.
    #[serde(default)]
    pub endless: bool,
    /// It need not be so at once, but within so many milliseconds.
    pub within: Option<u64>,
}

/// See [`Step::Locked`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Locked {
    /// The actor that looks.
    pub by: String,
    /// The lock; `x` by default.
    #[serde(default)]
    pub lock: Name,
    /// Whether anybody holds it.
    pub is: bool,
}

/// See [`Step::Names`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Names {
    /// The actor that looks.
    pub by: String,
    /// How they begin, behind the case's prefix.
    #[serde(default)]
    pub prefix: String,
    /// All of them, in order.
    pub are: Vec<String>,
}

/// See [`Step::Connect`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Connect {
    /// The actor.
    pub actor: String,
    /// Where to; `$url` is the cell's own store, and stands there by default; `$address` is its server's.
    pub url: Option<String>,
    /// Its options.
    #[serde(default)]
    pub options: Options,
    /// The expected result.
    pub expect: Option<Expect>,
}

/// See [`Step::Reach`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reach {
    /// The actor, which has no client afterwards.
    pub actor: String,
    /// Where to: `$intruder` is the cell's own store with a wrong password, `$nowhere` the same where no server is.
    pub url: String,
    /// The expected result.
    pub expect: Expect,
}

/// See [`Step::Busy`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Busy {
    /// The actor.
    pub actor: String,
    /// Milliseconds.
    pub time: f64,
}

/// See [`Step::Redis`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Redis {
    /// The command and its arguments.
    pub command: Vec<String>,
    /// The store's answer, as text.
    pub answer: Option<String>,
}

/// See [`Step::Sql`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sql {
    /// The statements.
    pub run: String,
    /// The server's answer.
    pub answer: Option<String>,
}

/// The events that can happen to a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Server {
    /// It ends as by `kill -9` and starts again, empty.
    Restart,
    /// It is frozen.
    Stop,
    /// It goes on.
    Resume,
    /// It ends as by `kill -9`.
    Kill,
}

/// See [`Step::Parallel`] and [`Step::Repeat`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Times {
    /// How often.
    pub times: usize,
    /// Of branches beside each other: how many grants they end with, where that is said.
    #[serde(default)]
    pub granted: Option<usize>,
    /// The steps to repeat or to play beside each other.
    pub steps: Vec<Step>,
}

/// See [`Step::Tally`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tally {
    /// Which.
    pub name: String,
    /// How much.
    pub is: u64,
}

impl Step {
    /// The step as text, for people who look for a failure.
    pub(super) fn shown(&self) -> String {
        fn prune(value: &mut serde_json::Value) {
            if let Some(object) = value.as_object_mut() {
                object.retain(|key, value| {
                    let empty = value.as_object().is_some_and(serde_json::Map::is_empty);
                    !value.is_null() && !empty && key != "steps"
                });
                object.values_mut().for_each(prune);
            }
        }
        let mut value = serde_json::to_value(self).unwrap_or_default();
        prune(&mut value);
        value.to_string()
    }
}
