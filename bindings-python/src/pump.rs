//! The completions of one event loop.

use std::os::fd::RawFd;
use std::sync::Arc;

use fencelock::facade;
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;

use crate::bell::Bell;
use crate::process::Own;
use crate::{Ended, ended};

/// One for each event loop: it rings a file descriptor that the loop watches, and the loop drains. No thread of the
/// runtime ever takes the interpreter's lock.
#[pyclass(frozen, module = "fencelock._native")]
pub(crate) struct Pump {
    bell: Arc<Bell>,
    pump: Own<facade::Pump>,
}

impl Pump {
    /// The core's pump, in the process that made this.
    pub(crate) fn pump(&self) -> fencelock::Result<&facade::Pump> {
        self.pump.get()
    }
}

#[pymethods]
impl Pump {
    #[new]
    fn new() -> PyResult<Self> {
        let bell = Arc::new(Bell::new().map_err(PyOSError::new_err)?);
        let rung = bell.clone();
        Ok(Self { bell, pump: Own::new(facade::Pump::new(Arc::new(move || rung.ring()))) })
    }

    /// The descriptor that becomes readable when there is something to drain.
    fn fileno(&self) -> RawFd {
        self.bell.descriptor()
    }

    /// All that has ended: the operation's number, and how.
    fn drain(&self) -> Vec<(u64, Ended)> {
        // First the bell, so that what ends from now on rings again.
        self.bell.hush();
        let done = self.pump().map(facade::Pump::drain).unwrap_or_default();
        done.into_iter().map(|done| (done.operation, ended(done.result))).collect()
    }

    /// Gives an operation up: whatever it won is given back, and it is drained no more.
    fn forget(&self, operation: u64) {
        if let Ok(pump) = self.pump() {
            pump.forget(operation);
        }
    }

    /// Operations under way and ends not drained.
    fn load(&self) -> (usize, usize) {
        self.pump().map(facade::Pump::load).unwrap_or_default()
    }
}
