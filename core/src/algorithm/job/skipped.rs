//! A start that starts nothing.

use std::fmt;
use std::time::{Duration, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use super::record::JobState;
use crate::why::Why;

/// No run was started: why, and what the store knew of the last one. As JSON its times are milliseconds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Skipped {
    /// Why.
    pub why: Why,
    /// The last run, and in its `info` who has it or had it.
    pub last: JobState,
    /// When a run may start at the earliest, by the store's clock since 1970. While one is in progress, when that counts as
    /// dead unless it is heard of again. `None` if only the scheduler knows the next instant.
    #[serde(with = "crate::port::millis::optional")]
    pub until: Option<Duration>,
}

/// A moment for people.
fn shown(at: Duration) -> impl fmt::Display {
    humantime::format_rfc3339_seconds(UNIX_EPOCH + at)
}

impl fmt::Display for Skipped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { why, last, until } = self;
        let what = match why {
            Why::Running => "the last run is in progress",
            Why::Done if last.dead => "the run of this instant has died, and is not run again",
            Why::Done => "the run of this instant was started before",
            Why::NotDue => "it is too soon after the last run, or that was for a later instant",
        };
        let (instant, started) = (shown(last.instant), shown(last.started));
        write!(f, "{why}: {what} (instant: {instant}, started: {started}")?;
        for name in ["host", "pid", "label"] {
            match &last.info[name] {
                serde_json::Value::Null => {}
                serde_json::Value::String(text) => write!(f, ", {name}: {text}")?,
                other => write!(f, ", {name}: {other}")?,
            }
        }
        match (why, until) {
            (_, None) => f.write_str(")"),
            (Why::Running, Some(until)) => {
                write!(f, ", unless heard of dead at: {})", shown(*until))
            }
            (_, Some(until)) => write!(f, ", due again at: {})", shown(*until)),
        }
    }
}
