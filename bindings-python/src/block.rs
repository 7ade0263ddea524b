//! The two ends of a `with`. A signal may come before the first line of a function of Python's, whose handler raises there:
//! between a block's end and its guard's there must be none, or nobody would give the guard back.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

use fencelock::{Code, Error};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::grant::Grant;
use crate::raised;

/// Ends a block: as its guard does, and by giving that back if anything comes in between.
fn end(guard: &Bound<'_, PyAny>, how: &Bound<'_, PyTuple>) -> PyResult<()> {
    let py = guard.py();
    let ended = guard.call_method1(intern!(py, "_exit"), how);
    if ended.is_err() {
        guard.getattr(intern!(py, "_grant"))?.cast::<Grant>()?.get().forget()?;
    }
    ended.map(drop)
}

/// What a guard is, so that a block can end it.
#[pyclass(subclass, frozen, module = "fencelock._native")]
pub(crate) struct Block;

#[pymethods]
impl Block {
    #[new]
    #[pyo3(signature = (*_arguments, **_named))]
    fn new(_arguments: &Bound<'_, PyAny>, _named: Option<&Bound<'_, PyAny>>) -> Self {
        Self
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*how))]
    fn __exit__(slf: &Bound<'_, Self>, how: &Bound<'_, PyTuple>) -> PyResult<()> {
        end(slf, how)
    }
}

/// Which frame of Python's calls: a `with` is entered and left in one, whichever thread runs it; 0 if that cannot be said.
fn frame(py: Python<'_>) -> usize {
    let sys = py.import(intern!(py, "sys"));
    let frame = sys.and_then(|sys| sys.call_method0(intern!(py, "_getframe")));
    frame.map_or(0, |frame| frame.as_ptr() as usize)
}

/// A block that was entered.
struct Entered {
    frame: usize,
    thread: ThreadId,
    guard: Py<PyAny>,
}

/// What a lock is, so that blocks can be entered by its name: each has a guard of its own.
#[pyclass(subclass, frozen, module = "fencelock._native")]
pub(crate) struct Blocks(Mutex<Vec<Entered>>);

impl Blocks {
    fn entered(&self) -> MutexGuard<'_, Vec<Entered>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The guard of this frame's innermost block: a generator may be ended by another thread than began it. An `ExitStack`
    /// enters in one frame and leaves in another: then it is this thread's, or the only one.
    fn leave(&self, frame: usize) -> Option<Py<PyAny>> {
        let (mut entered, me) = (self.entered(), thread::current().id());
        let of_frame = entered.iter().rposition(|one| one.frame == frame);
        let of_thread = || entered.iter().rposition(|one| one.thread == me);
        let only = || (entered.len() == 1).then_some(0);
        let place = of_frame.or_else(of_thread).or_else(only)?;
        Some(entered.remove(place).guard)
    }
}

#[pymethods]
impl Blocks {
    #[new]
    #[pyo3(signature = (*_arguments, **_named))]
    fn new(_arguments: &Bound<'_, PyAny>, _named: Option<&Bound<'_, PyAny>>) -> Self {
        Self(Mutex::default())
    }

    fn __enter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        // First, so that nothing comes between the grant and its entry.
        let (frame, thread) = (frame(slf.py()), thread::current().id());
        let guard = slf.call_method0(intern!(slf.py(), "acquire"))?;
        slf.get().entered().push(Entered { frame, thread, guard: guard.clone().unbind() });
        Ok(guard)
    }

    #[pyo3(signature = (*how))]
    fn __exit__(slf: &Bound<'_, Self>, how: &Bound<'_, PyTuple>) -> PyResult<()> {
        let guard = slf.get().leave(frame(slf.py())).ok_or_else(|| {
            let message = "another thread entered this block, and others are in blocks of this lock; \
                           use `with lock.acquire() as guard`";
            raised(&Error::new(Code::Invalid, message).with("argument", "with"))
        })?;
        end(guard.bind(slf.py()), how)
    }
}
