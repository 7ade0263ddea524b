//! Greenlets, as gevent's and eventlet's: a thread runs many, and one that waits in native code stops them all.

use std::sync::Arc;

use fencelock::facade::{self, Answer};
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::interned::interned;
use crate::process::Own;
use crate::wake_fd::WakeFd;
use crate::{raised, tried};

/// A function that waits for a descriptor while the other greenlets of this thread go on.
pub(crate) struct Greenlets<'py>(Bound<'py, PyAny>);

impl<'py> Greenlets<'py> {
    /// None where this thread runs no greenlets.
    pub(crate) fn here(py: Python<'py>) -> PyResult<Option<Self>> {
        let loaded = loaded(py)?;
        if !loaded.contains(interned(py, "gevent"))?
            && !loaded.contains(interned(py, "eventlet"))?
        {
            return Ok(None);
        }
        let waiting = py.import(interned(py, "fencelock._waiting"))?;
        let wait = waiting.call_method0(interned(py, "greenlets"))?;
        Ok((!wait.is_none()).then_some(Self(wait)))
    }

    /// Waits for what is set off in a pump of its own. Whatever is raised meanwhile gives that up: what it had won is given back.
    pub(crate) fn wait(&self, set_off: impl FnOnce(&facade::Pump) -> u64) -> PyResult<Answer> {
        let wake_fd = Arc::new(WakeFd::new().map_err(PyOSError::new_err)?);
        let rung = wake_fd.clone();
        let pump = Own::new(facade::Pump::new(Arc::new(move || rung.ring())));
        pump.get().map(set_off).map(drop).unwrap_or_default();
        loop {
            self.0.call1((wake_fd.descriptor(),))?;
            // The child of a fork goes on with its parent's greenlets. It leaves the wake-up descriptor alone: both hear it.
            if let Some(done) = tried(|| Ok(pump.get()?.drain().pop()))? {
                return done.result.map_err(|error| raised(&error));
            }
        }
    }
}

/// Which greenlet of this thread runs; 0 where there are none.
pub(crate) fn current(py: Python<'_>) -> usize {
    let greenlet = loaded(py).and_then(|loaded| loaded.get_item(interned(py, "greenlet")));
    let Ok(Some(greenlet)) = greenlet else { return 0 };
    let running = greenlet.call_method0(interned(py, "getcurrent"));
    running.map_or(0, |running| running.as_ptr() as usize)
}

/// The modules that were imported by now.
fn loaded(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let sys = py.import(interned(py, "sys"))?;
    Ok(sys.getattr(interned(py, "modules"))?.cast_into::<PyDict>()?)
}
