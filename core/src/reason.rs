//! The reason a job is not run.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The reason no run was started, in one word that is the same in every language.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Reason {
    /// `running`: the last run is in progress.
    Running,
    /// `done`: the instant that is due was run, or its run has died and is not run again.
    Done,
    /// `not_due`: the last run started less than half a period ago, or less than its `at_least_for`, or it was for a later
    /// instant.
    NotDue,
}

impl Reason {
    /// The word, `not_due` for instance.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Done => "done",
            Self::NotDue => "not_due",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
