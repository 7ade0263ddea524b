//! Attempts of which each speaks for all who waited for it.

use crate::error::Error;

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
