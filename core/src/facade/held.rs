//! What stands behind a number.

use crate::error::Error;
use crate::guard::{Claim, Guard};
use crate::job::Run;

/// A guard, or a run of a job.
pub(super) enum Held {
    Guard(Guard),
    Run(Run),
}

impl Held {
    pub(super) fn claim(&self) -> Claim {
        match self {
            Self::Guard(guard) => guard.claim(),
            Self::Run(run) => Claim::clone(run),
        }
    }

    /// The scheduled instant of a run, in milliseconds.
    pub(super) fn instant(&self) -> Option<f64> {
        match self {
            Self::Guard(_) => None,
            Self::Run(run) => Some(run.instant().as_secs_f64() * 1000.0),
        }
    }

    /// Nobody has it: a guard is given back, a run is left to others.
    pub(super) fn take_back(self) {
        match self {
            Self::Guard(guard) => drop(guard),
            Self::Run(run) => run.take_back(),
        }
    }

    pub(super) fn guard(self) -> Result<Guard, Self> {
        match self {
            Self::Guard(guard) => Ok(guard),
            run @ Self::Run(_) => Err(run),
        }
    }

    pub(super) fn run(self) -> Result<Run, Self> {
        match self {
            Self::Run(run) => Ok(run),
            guard @ Self::Guard(_) => Err(guard),
        }
    }

    /// What to say to somebody who took it for the other sort.
    pub(super) fn wrong_sort(&self) -> Error {
        match self {
            Self::Guard(_) => Error::invalid("guard", "this is no run of a job; release it"),
            Self::Run(_) => Error::invalid("guard", "this is a run of a job; say how it ended"),
        }
    }
}
