//! The wrapper that every call from JavaScript runs in.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use napi::{Error, Result, Status};

/// The state behind an object of JavaScript's, which reaches it by [`Inside::enter`] only.
pub(crate) struct Inside<T>(T);

impl<T> Inside<T> {
    pub(crate) fn new(inside: T) -> Self {
        Self(inside)
    }

    /// Does something with it, as an [`entry`].
    pub(crate) fn enter<R>(&self, act: impl FnOnce(&T) -> R) -> Result<R> {
        entry(|| act(&self.0))
    }
}

/// Does what was called for. A panic is a defect of ours: an exception to whoever called, and not the end of the process.
pub(crate) fn entry<R>(act: impl FnOnce() -> R) -> Result<R> {
    catch_unwind(AssertUnwindSafe(act))
        .map_err(|panic| Error::new(Status::GenericFailure, text(&*panic)))
}

fn text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or_default()
}
