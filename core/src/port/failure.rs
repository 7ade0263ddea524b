//! Requests to a store that failed, or were not answered; and attempts of which each speaks for all who waited for it.

use crate::error::Error;

/// A step that was not answered.
#[derive(Clone, Debug)]
pub struct Failure {
    /// Why.
    pub error: Error,
    /// Whether the step may have changed the store all the same.
    pub applied: Applied,
}

impl Failure {
    /// The step certainly changed nothing.
    pub fn refused(error: Error) -> Self {
        Self { error, applied: Applied::No }
    }

    /// The step may have been carried out, or may yet be.
    pub fn unknown(error: Error) -> Self {
        Self { error, applied: Applied::Unknown }
    }
}

/// Whether a failed step may have changed the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Applied {
    /// Certainly not.
    No,
    /// Perhaps, now or later.
    Unknown,
}

/// How many attempts have failed, and why the last one did. Whoever waited for one that has failed does not make another.
#[derive(Debug, Default)]
pub(crate) struct Failures {
    count: u64,
    last: Option<Error>,
}

impl Failures {
    /// How many there were.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// An attempt has failed.
    pub(crate) fn add(&mut self, why: &Error) {
        self.count += 1;
        self.last = Some(why.clone());
    }

    /// Why the last one failed, if any has since there were so many.
    pub(crate) fn since(&self, before: u64) -> Option<Error> {
        self.last.clone().filter(|_| self.count != before)
    }
}
