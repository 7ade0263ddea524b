//! A start that starts nothing.

use std::fmt;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use super::record::JobState;
use crate::reason::Reason;

/// The answer of a start that started no run. As JSON its times are milliseconds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Skipped {
    /// The reason.
    pub reason: Reason,
    /// The earliest time at which it is worth asking again, by the store's clock. While a run is in progress: when
    /// that run counts as dead, if it is not renewed. `None` if only the scheduler knows the next instant.
    #[serde(with = "crate::port::millis::optional")]
    pub next: Option<SystemTime>,
    /// The last run, with its holder in `info`.
    pub last: JobState,
}

/// A moment for people.
fn shown(at: SystemTime) -> impl fmt::Display {
    humantime::format_rfc3339_seconds(at)
}

impl fmt::Display for Skipped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { reason, next, last } = self;
        let what = match reason {
            Reason::Running => "the last run is in progress",
            Reason::Done if last.dead => "the run of this instant has died, and is not run again",
            Reason::Done => "the run of this instant was started before",
            Reason::NotDue => "it is too soon after the last run, or that was for a later instant",
        };
        let (instant, started) = (shown(last.instant), shown(last.started));
        write!(f, "{reason}: {what} (instant: {instant}, started: {started}")?;
        let info: serde_json::Value = serde_json::from_str(&last.info).unwrap_or_default();
        for name in ["host", "pid", "info"] {
            match &info[name] {
                serde_json::Value::Null => {}
                serde_json::Value::String(text) => write!(f, ", {name}: {text}")?,
                other => write!(f, ", {name}: {other}")?,
            }
        }
        match (reason, next) {
            (_, None) => f.write_str(")"),
            (Reason::Running, Some(next)) => {
                write!(f, ", unless heard of dead at: {})", shown(*next))
            }
            (_, Some(next)) => write!(f, ", due again at: {})", shown(*next)),
        }
    }
}
