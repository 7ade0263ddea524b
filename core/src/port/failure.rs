//! Requests to a store that were not answered.

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
