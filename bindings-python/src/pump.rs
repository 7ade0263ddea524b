//! The completions of one event loop.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fencelock::Result;
use fencelock::facade::{self, Completion, Operation};
use fencelock::port::{BoxFuture, RuntimeHandle};
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use serde_json::Value;

use crate::connection::Link;
use crate::process::Own;
use crate::wake_fd::{Descriptor, WakeFd};
use crate::{Outcome, caught};

/// One for each event loop: it rings a file descriptor that the loop watches, and the loop drains. No thread of the
/// runtime ever takes the interpreter's lock.
#[pyclass(frozen, module = "fencelock._native")]
pub(crate) struct Pump {
    wake_fd: Arc<WakeFd>,
    own: Own<Inside>,
}

struct Inside {
    pump: facade::Pump,
    /// The link of each operation that may complete with a grant, by the operation's number.
    granting: Mutex<HashMap<u64, Arc<Link>>>,
}

impl Inside {
    fn granting(&self) -> MutexGuard<'_, HashMap<u64, Arc<Link>>> {
        self.granting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ended(&self, Completion { operation, result }: Completion) -> (u64, Outcome) {
        let link = self.granting().remove(&operation);
        let of = |answer| Outcome::of(answer, link.as_ref());
        (operation, result.map_or_else(Outcome::Error, of))
    }
}

impl Pump {
    /// Sets an operation of a client off and answers its number.
    pub(crate) fn submit(&self, link: &Arc<Link>, operation: Operation) -> Result<u64> {
        let (inside, facade, grants) = (self.own.get()?, link.connected()?, operation.grants());
        // Whoever drains waits until it is known whose grant it is.
        let mut granting = inside.granting();
        let number = inside.pump.submit(facade, operation);
        if grants {
            granting.insert(number, link.clone());
        }
        Ok(number)
    }

    /// Sets anything else off.
    pub(crate) fn run(
        &self,
        runtime: &RuntimeHandle,
        work: BoxFuture<'static, Result<Value>>,
    ) -> Result<u64> {
        Ok(self.own.get()?.pump.run(runtime, work))
    }
}

#[pymethods]
impl Pump {
    #[new]
    fn new() -> PyResult<Self> {
        let wake_fd = Arc::new(WakeFd::new().map_err(PyOSError::new_err)?);
        let rung = wake_fd.clone();
        let pump = facade::Pump::new(Arc::new(move || rung.ring()));
        Ok(Self { wake_fd, own: Own::new(Inside { pump, granting: Mutex::default() }) })
    }

    /// The descriptor that becomes readable when there is something to drain.
    fn fileno(&self) -> Descriptor {
        self.wake_fd.descriptor()
    }

    /// All that has ended: the operation's number, and its result or error.
    fn drain(&self) -> PyResult<Vec<(u64, Outcome)>> {
        caught(|| {
            // First the descriptor, so that what ends from now on wakes again.
            self.wake_fd.hush();
            let drain = |inside: &Inside| {
                inside.pump.drain().into_iter().map(|done| inside.ended(done)).collect()
            };
            self.own.get().map(drain).unwrap_or_default()
        })
    }

    /// Gives an operation up: whatever it won is given back, and it is drained no more.
    fn forget(&self, operation: u64) -> PyResult<()> {
        caught(|| {
            if let Ok(inside) = self.own.get() {
                inside.pump.forget(operation);
                inside.granting().remove(&operation);
            }
        })
    }

    /// Operations under way and ends not drained.
    fn load(&self) -> PyResult<(usize, usize)> {
        caught(|| self.own.get().map(|inside| inside.pump.load()).unwrap_or_default())
    }
}
