//! The record of the last run, as a job's cell keeps it.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;

use super::schedule::{Due, Times, micros, moment};
use super::skipped::Skipped;
use crate::engine::Request;
use crate::error::{Code, Error, Result};
use crate::fence::Token;
use crate::port::{CellKey, Look, Mode};
use crate::reason::Reason;

/// The parameters of a start.
#[derive(Clone, Debug)]
pub(crate) struct JobRequest {
    pub times: Times,
    /// The instant that the scheduler names, in µs since 1970.
    pub at: Option<u64>,
    pub ttl: Duration,
    pub at_least: Duration,
    pub at_most: Option<Duration>,
    pub retry_dead: bool,
    /// How long the caller stays for an answer.
    pub patience: Duration,
    /// The information about the client that asks, as JSON.
    pub info: Arc<str>,
}

impl JobRequest {
    /// The run that is due when the store's clock shows `clock`.
    pub(super) fn due(&self, clock: u64) -> Result<Due> {
        let due = self.times.due(clock)?;
        self.at.map_or(Ok(due), |at| due.named(at, clock))
    }

    /// The earliest time at which a later instant than this is due; `None` if only the scheduler knows.
    pub(super) fn after(&self, instant: u64) -> Option<u64> {
        if self.at.is_none() { self.times.after(instant) } else { None }
    }

    /// The first lease of a run.
    pub(super) fn lease(&self) -> Duration {
        self.at_most.map_or(self.ttl, |most| most.min(self.ttl))
    }

    /// The run's request for the job's lock.
    pub(super) fn of_lock(&self) -> Request {
        Request {
            mode: Mode::Exclusive,
            limit: 1,
            permits: 1,
            ttl: self.lease(),
            renew: true,
            max_hold: self.at_most,
            open: false,
            local: 0,
            info: self.info.clone(),
            adopts: false,
        }
    }
}

/// How a job's run stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Status {
    /// It has succeeded.
    #[serde(rename = "S", alias = "succeeded")]
    Succeeded,
    /// It has failed.
    #[serde(rename = "F", alias = "failed")]
    Failed,
    /// It is in progress, or died.
    #[serde(rename = "P", alias = "in_progress")]
    InProgress,
}

/// A job's last run, for people who look. As JSON its status is a word, and its times are milliseconds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct JobState {
    /// How it stands.
    #[serde(serialize_with = "word")]
    pub status: Status,
    /// Whether it is in progress but was not seen alive for so long that it counts as dead.
    pub dead: bool,
    /// Its scheduled instant.
    #[serde(with = "crate::port::millis")]
    pub instant: SystemTime,
    /// Its fencing token.
    pub token: Token,
    /// When it started, by the store's clock.
    #[serde(with = "crate::port::millis")]
    pub started: SystemTime,
    /// When it was last seen alive, or ended. Of a run that has died only the start is known.
    #[serde(with = "crate::port::millis")]
    pub seen: SystemTime,
    /// The information it gave about itself, as JSON.
    #[serde(with = "json_text")]
    pub info: Arc<str>,
}

/// The status for people; in a cell it is a letter.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes it so")]
fn word<S: Serializer>(status: &Status, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(match status {
        Status::Succeeded => "succeeded",
        Status::Failed => "failed",
        Status::InProgress => "in_progress",
    })
}

/// In JSON, text that is JSON is what it says.
mod json_text {
    use std::sync::Arc;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use serde_json::Value;

    pub(super) fn serialize<S: Serializer>(text: &str, to: S) -> Result<S::Ok, S::Error> {
        serde_json::from_str::<Value>(text).unwrap_or_default().serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Arc<str>, D::Error> {
        Value::deserialize(from).map(|value| value.to_string().into())
    }
}

/// A run as it lies in the cell. Times are µs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Record {
    pub status: Status,
    /// The scheduled instant.
    pub instant: u64,
    /// That of the job's lock, which it holds.
    #[serde(default)]
    pub token: Token,
    /// The store's clock at its start; left out there, which does not know it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started: Option<u64>,
    /// The lease of the job's lock.
    pub ttl: u64,
    /// The shortest time from its start to the next one's.
    #[serde(default)]
    pub at_least: u64,
    #[serde(default)]
    pub info: Value,
    /// When the cell was changed last.
    #[serde(skip)]
    pub changed: u64,
    /// The time left of its lease while it has the job's lock.
    #[serde(skip)]
    pub left: Option<Duration>,
}

impl Record {
    /// A run about to start.
    pub(super) fn begun(instant: u64, token: Token, request: &JobRequest) -> Self {
        Self {
            status: Status::InProgress,
            instant,
            token,
            started: None,
            ttl: micros(request.lease()),
            at_least: micros(request.at_least),
            info: serde_json::from_str(&request.info).unwrap_or_default(),
            changed: 0,
            left: None,
        }
    }

    /// The last run, if there was one.
    pub(super) fn of(look: &Look, key: &CellKey) -> Result<Option<Self>> {
        let (Some(text), Some(cell)) = (look.value(), &look.cell) else { return Ok(None) };
        let mut record: Self = serde_json::from_str(text).map_err(|error| {
            let message =
                "what lies under the job's name is no run; find out who wrote it, or choose another name";
            Error::new(Code::Conflict, message)
                .with("name", &*key.name)
                .with("reason", error.to_string())
        })?;
        record.changed = cell.since;
        record.started.get_or_insert(cell.since);
        Ok(Some(record))
    }

    pub(super) fn text(&self) -> Result<Arc<str>> {
        let text = serde_json::to_string(self);
        text.map(Into::into).map_err(|error| Error::internal(error.to_string()))
    }

    /// The same run, over.
    pub(super) fn ended(&self, status: Status) -> Self {
        Self { status, ..self.clone() }
    }

    /// The reason the run that is due may not start after this one; `None` if it may. What lies far ahead of the clock was written
    /// by a clock that was wrong, and keeps nothing from running.
    pub(super) fn keeps_from(
        &self,
        due: &Due,
        clock: u64,
        request: &JobRequest,
    ) -> Option<Skipped> {
        if let Some(left) = self.left {
            let ends = clock.saturating_add(micros(left));
            return Some(self.skips(Reason::Running, clock, Some(ends)));
        }
        let far = due.furthest(clock);
        let right = |at: &u64| *at <= far;
        let started = self.started.filter(right);
        // What died may have done its work: only who asked for that runs it again.
        let instant = due.instant;
        let again =
            instant == self.instant && self.status == Status::InProgress && request.retry_dead;
        let rest = if again { 0 } else { micros(due.rest) };
        let rests = started.map(|started| started.saturating_add(self.at_least.max(rest)));
        let rests = rests.filter(|end| clock < *end);
        let run = Some(self.instant).filter(|run| right(run) && *run >= instant && !again);
        match (run, rests) {
            (None, None) => None,
            (None, rests) => Some(self.skips(Reason::NotDue, clock, rests)),
            (Some(run), rests) => {
                let reason = if run == instant { Reason::Done } else { Reason::NotDue };
                let next = request.after(run).map(|next| next.max(rests.unwrap_or(0)));
                Some(self.skips(reason, clock, next))
            }
        }
    }

    fn skips(&self, reason: Reason, clock: u64, next: Option<u64>) -> Skipped {
        Skipped { reason, next: next.map(moment), last: self.clone().state(clock) }
    }

    pub(super) fn state(self, clock: u64) -> JobState {
        // Its last renewal, of which the store remembers when the lease ends.
        let renewed = |left| clock.saturating_add(micros(left)).saturating_sub(self.ttl);
        let seen = self.left.map_or(self.changed, |left| renewed(left).max(self.changed));
        JobState {
            dead: self.status == Status::InProgress && self.left.is_none(),
            status: self.status,
            instant: moment(self.instant),
            token: self.token,
            started: moment(self.started.unwrap_or_default()),
            seen: moment(seen),
            info: self.info.to_string().into(),
        }
    }
}
