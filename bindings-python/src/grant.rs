//! A grant, as an object of Python's.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use fencelock::facade::{Facade, Granted, Operation};
use fencelock::{Code, Error, Result};
use pyo3::prelude::*;

use crate::connection::Link;
use crate::process::{self, Own};
use crate::pump::Pump;
use crate::unraisable_signal;
use crate::{Outcome, caught, tried};

/// A guard, or a run of a job, that somebody of Python's has. Dropped by whatever may happen between two of Python's steps,
/// a signal for instance, it is declined unless it was given back before. In the child of a fork it is inert.
///
/// A guard that its owner forgot is dropped here too, not in a `__del__`: that runs at every guard's end, and swallows a
/// signal that comes meanwhile.
#[pyclass(frozen, module = "fencelock._native")]
pub(crate) struct Grant {
    link: Own<Arc<Link>>,
    granted: Granted,
    /// The name of the guard that its owner has by now.
    owned: OnceLock<String>,
}

impl Grant {
    pub(crate) fn new(link: Arc<Link>, granted: Granted) -> Self {
        Self { link: Own::new(link), granted, owned: OnceLock::new() }
    }

    fn facade(&self) -> Result<&Facade> {
        self.link.get()?.connected()
    }

    /// Does something at once, where it is not inert.
    fn now<T: Default>(&self, act: impl FnOnce(&Facade, u64) -> T) -> T {
        self.facade().map(|facade| act(facade, self.granted.guard)).unwrap_or_default()
    }

    /// Whether it was given back.
    fn is_over(&self) -> bool {
        let gone = |error: &Error| error.code() == Code::NotHeld;
        self.now(|facade, guard| facade.check(guard).err().as_ref().is_some_and(gone))
    }

    fn release_it(&self, succeeded: bool) -> Operation {
        Operation::Release { guard: self.granted.guard, succeeded }
    }
}

impl Drop for Grant {
    fn drop(&mut self) {
        match self.owned.get() {
            Some(name) if self.is_here() && !self.is_over() => {
                self.now(Facade::forget);
                Python::try_attach(|py| warn(py, name)).unwrap_or_default();
            }
            // Nobody has it: the run of a job is left to others instead of having failed.
            _ => self.now(Facade::decline),
        }
    }
}

/// Tells that a guard was forgotten. Nobody can catch what becomes of that, and whatever is raised already goes on.
fn warn(py: Python<'_>, name: &str) {
    let raised = PyErr::take(py);
    let leaves = |sys: Bound<'_, PyModule>| sys.call_method0("is_finalizing")?.is_truthy();
    if !py.import("sys").and_then(leaves).unwrap_or(true) {
        let warning = py
            .import("fencelock.errors")
            .and_then(|errors| errors.call_method1("ForgottenGuardWarning", (name,)));
        // Of the line that runs, where the guard is thrown away as often as not.
        let warned =
            warning.and_then(|warning| py.import("warnings")?.call_method1("warn", (warning,)));
        warned.map_or_else(|error| unraisable_signal::tell(py, error), drop);
    }
    if let Some(error) = raised {
        error.restore(py);
    }
}

#[pymethods]
impl Grant {
    /// Its number, for operations.
    #[getter]
    fn guard(&self) -> u64 {
        self.granted.guard
    }

    /// Its fencing token.
    #[getter]
    fn token(&self) -> u64 {
        self.granted.token
    }

    /// The name of the lock that was adopted.
    #[getter]
    fn name(&self) -> Option<&str> {
        self.granted.name.as_deref()
    }

    /// Of several as one: the token of each, by name.
    #[getter]
    fn tokens(&self) -> BTreeMap<String, u64> {
        self.granted.tokens.clone()
    }

    /// The scheduled instant of a run, in seconds since 1970.
    #[getter]
    fn instant(&self) -> f64 {
        self.granted.instant.unwrap_or_default() / 1000.0
    }

    /// Whether this process was granted it.
    fn is_here(&self) -> bool {
        self.link.is_here()
    }

    /// Whether it was given back.
    fn is_given_back(&self) -> PyResult<bool> {
        caught(|| self.is_over())
    }

    /// A guard of this name takes it over.
    fn own(&self, name: String) {
        let _ = self.owned.set(name);
    }

    /// Whether it may be relied on at this very moment.
    fn is_held(&self) -> PyResult<bool> {
        caught(|| self.now(Facade::is_held))
    }

    /// For how many seconds it may still be relied on.
    fn remaining(&self) -> PyResult<f64> {
        caught(|| self.now(Facade::remaining) / 1000.0)
    }

    /// Raises unless it may be relied on.
    pub(crate) fn check(&self) -> PyResult<()> {
        tried(|| self.facade()?.check(self.granted.guard))
    }

    /// Gives it back, a run with how it went, and waits for the answer.
    fn release(&self, py: Python<'_>, succeeded: bool) -> PyResult<Outcome> {
        let perform = || process::perform(py, tried(|| self.facade())?, self.release_it(succeeded));
        caught(perform).flatten().map(Outcome::Answer)
    }

    /// The same by an event loop's pump; answers the operation's number.
    fn submit_release(&self, pump: &Pump, succeeded: bool) -> PyResult<u64> {
        tried(|| pump.submit(self.link.get()?, self.release_it(succeeded)))
    }

    /// Gives it back without waiting.
    pub(crate) fn forget(&self) -> PyResult<()> {
        caught(|| self.now(Facade::forget))
    }

    /// Takes it back from whoever has gone, as if it had not been asked for.
    fn decline(&self) -> PyResult<()> {
        caught(|| self.now(Facade::decline))
    }
}
