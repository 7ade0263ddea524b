//! The guards and runs behind the numbers of a facade.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::all::AllGuard;
use crate::error::Error;
use crate::guard::{Claim, Guard};
use crate::job::Run;
use crate::port::BoxFuture;
use crate::released::Released;

/// A guard, one of several locks, or a run of a job.
pub(super) enum HeldItem {
    Guard(Guard),
    All(AllGuard),
    Run(Run),
}

impl HeldItem {
    /// A look at each of its holds, in the order of the names.
    pub(super) fn claims(&self) -> Vec<Claim> {
        match self {
            Self::Guard(guard) => vec![guard.claim()],
            Self::All(guard) => guard.claims().collect(),
            Self::Run(run) => vec![Claim::clone(run)],
        }
    }

    pub(super) fn is_held(&self) -> bool {
        match self {
            Self::Guard(guard) => guard.is_held(),
            Self::All(guard) => guard.is_held(),
            Self::Run(run) => run.is_held(),
        }
    }

    /// An error if it is a run that is over already.
    pub(super) fn check_run(&self) -> Result<(), Error> {
        match self {
            Self::Guard(_) | Self::All(_) => Ok(()),
            Self::Run(run) => run.check(),
        }
    }

    pub(super) fn remaining(&self) -> Duration {
        match self {
            Self::Guard(guard) => guard.remaining(),
            Self::All(guard) => guard.remaining(),
            Self::Run(run) => run.remaining(),
        }
    }

    /// The token; of several as one, that of the first.
    pub(super) fn token(&self) -> u64 {
        let token = match self {
            Self::Guard(guard) => guard.token(),
            Self::All(guard) => guard.tokens().next().map(|(_, token)| token).unwrap_or_default(),
            Self::Run(run) => run.token(),
        };
        token.get()
    }

    /// The tokens of several as one.
    pub(super) fn tokens(&self) -> BTreeMap<String, u64> {
        match self {
            Self::All(guard) => {
                guard.tokens().map(|(name, token)| (name.to_owned(), token.get())).collect()
            }
            Self::Guard(_) | Self::Run(_) => BTreeMap::new(),
        }
    }

    /// The scheduled instant of a run, in milliseconds.
    pub(super) fn instant(&self) -> Option<f64> {
        match self {
            Self::Guard(_) | Self::All(_) => None,
            Self::Run(run) => Some(run.instant().as_secs_f64() * 1000.0),
        }
    }

    /// The name of one that was adopted.
    pub(super) fn adopted(&self) -> Option<String> {
        match self {
            Self::Guard(guard) if guard.is_adopted() => Some(guard.name().to_owned()),
            _ => None,
        }
    }

    /// Nobody has it: a guard is given back, a run is left to others.
    pub(super) fn take_back(self) {
        match self {
            Self::Guard(guard) => drop(guard),
            Self::All(guard) => drop(guard),
            Self::Run(run) => run.take_back(),
        }
    }

    /// Gives a guard back.
    pub(super) fn release(self) -> Result<BoxFuture<'static, Released>, Self> {
        match self {
            Self::Guard(guard) => Ok(Box::pin(guard.release())),
            Self::All(guard) => Ok(Box::pin(guard.release())),
            run @ Self::Run(_) => Err(run),
        }
    }

    pub(super) fn run(self) -> Result<Run, Self> {
        match self {
            Self::Run(run) => Ok(run),
            other => Err(other),
        }
    }

    /// The error for a caller that took it for another sort.
    pub(super) fn wrong_sort(&self) -> Error {
        let message = match self {
            Self::Guard(_) | Self::All(_) => "this is no run of a job; release it",
            Self::Run(_) => "this is a run of a job; say how it ended",
        };
        Error::invalid("guard", message)
    }
}
