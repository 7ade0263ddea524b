//! The guards and runs behind the numbers of a facade.

use std::collections::BTreeMap;
use std::time::UNIX_EPOCH;

use crate::guard::Guard;
use crate::job::Run;
use crate::port::BoxFuture;
use crate::released::Released;

/// A guard, or a run of a job.
pub(super) enum HeldItem {
    Guard(Guard),
    Run(Run),
}

impl HeldItem {
    pub(super) fn guard(&self) -> &Guard {
        match self {
            Self::Guard(guard) => guard,
            Self::Run(run) => run,
        }
    }

    /// The tokens of several as one.
    pub(super) fn tokens(&self) -> BTreeMap<String, u64> {
        let guard = self.guard();
        if !guard.is_several() {
            return BTreeMap::new();
        }
        let tokens = guard.tokens().into_iter();
        tokens.map(|(name, token)| (name.to_owned(), token.get())).collect()
    }

    /// The scheduled instant of a run, in milliseconds.
    pub(super) fn instant(&self) -> Option<f64> {
        match self {
            Self::Guard(_) => None,
            Self::Run(run) => {
                let since = run.instant().duration_since(UNIX_EPOCH).unwrap_or_default();
                Some(since.as_secs_f64() * 1000.0)
            }
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
            Self::Run(run) => run.take_back(),
        }
    }

    /// Gives it back; a run with how it went.
    pub(super) fn release(self, succeeded: bool) -> BoxFuture<'static, Released> {
        match self {
            Self::Guard(guard) => Box::pin(guard.release()),
            Self::Run(run) if succeeded => Box::pin(run.succeed()),
            Self::Run(run) => Box::pin(run.fail()),
        }
    }
}
