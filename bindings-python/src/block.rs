//! The two ends of a `with`. A signal may come before the first line of a function of Python's, whose handler raises there:
//! between a block's end and its guard's there must be none, or nobody would give the guard back.

use std::mem;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

use fencelock::{Code, Error};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::grant::Grant;
use crate::interned::interned;
use crate::{greenlets, raised};

/// Ends a block: as its guard does, and by giving that back if anything comes in between.
fn end(guard: &Bound<'_, PyAny>, how: &Bound<'_, PyTuple>) -> PyResult<()> {
    let py = guard.py();
    let ended = guard.call_method1(interned(py, "_exit"), how);
    if ended.is_err() {
        guard.getattr(interned(py, "_grant"))?.cast::<Grant>()?.get().forget()?;
    }
    ended.map(drop)
}

/// The base class of guards, so that a block can end a guard.
#[pyclass(subclass, frozen, module = "fencelock._native")]
pub(crate) struct Block;

#[pymethods]
impl Block {
    #[new]
    #[pyo3(signature = (*_arguments, **_named))]
    fn new(_arguments: &Bound<'_, PyAny>, _named: Option<&Bound<'_, PyAny>>) -> Self {
        Self
    }

    /// A guard that is not held any more begins no block.
    fn __enter__(slf: Bound<'_, Self>) -> PyResult<Bound<'_, Self>> {
        let grant = slf.getattr(interned(slf.py(), "_grant"))?;
        grant.cast::<Grant>()?.get().check()?;
        Ok(slf)
    }

    #[pyo3(signature = (*how))]
    fn __exit__(slf: &Bound<'_, Self>, how: &Bound<'_, PyTuple>) -> PyResult<()> {
        end(slf, how)
    }
}

/// The frame of Python's that calls, if that can be said: a `with` is entered and left in one.
fn frame(py: Python<'_>) -> Option<Bound<'_, PyAny>> {
    py.import(interned(py, "sys")).and_then(|sys| sys.call_method0(interned(py, "_getframe"))).ok()
}

/// Whether this frame may be left on another thread than it was entered on: a generator's, or a coroutine's.
fn wanders(frame: &Bound<'_, PyAny>) -> bool {
    // CO_GENERATOR, CO_COROUTINE, CO_ITERABLE_COROUTINE and CO_ASYNC_GENERATOR of the `inspect` module.
    const KINDS: u32 = 0x20 | 0x80 | 0x100 | 0x200;
    let code = frame.getattr(interned(frame.py(), "f_code"));
    let flags =
        code.and_then(|code| code.getattr(interned(frame.py(), "co_flags"))?.extract::<u32>());
    flags.is_ok_and(|flags| flags & KINDS != 0)
}

/// Where a frame lies. Another may lie there once it has ended and nobody keeps it.
fn place(frame: Option<&Bound<'_, PyAny>>) -> usize {
    frame.map_or(0, |frame| frame.as_ptr() as usize)
}

/// A thread and the greenlet that runs on it: what goes on by itself, one step after the other.
type Strand = (ThreadId, usize);

fn strand(py: Python<'_>) -> Strand {
    (thread::current().id(), greenlets::current(py))
}

/// A block that was entered.
struct Entered {
    /// Not the thread or the task: another one may end a generator.
    frame: usize,
    /// The frame, if it may wander. An ordinary one stays on its thread, where blocks end in the order they nest; kept by a
    /// block that an `ExitStack` ends, it would keep all that called it.
    kept: Option<Py<PyAny>>,
    strand: Strand,
    guard: Py<PyAny>,
}

/// The base class of locks, so that blocks can be entered by a lock's name: each block has a guard of its own.
#[pyclass(subclass, frozen, module = "fencelock._native")]
pub(crate) struct Blocks(Mutex<Vec<Entered>>);

impl Blocks {
    fn entered(&self) -> MutexGuard<'_, Vec<Entered>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The guard of this frame's innermost block, whichever thread runs it. An `ExitStack` enters in one frame and leaves in
    /// another: then it is this thread's (or greenlet's), none of a frame that wanders if there are others, or the only one.
    fn leave(&self, py: Python<'_>, frame: usize) -> Option<Py<PyAny>> {
        let me = strand(py);
        let mut entered = self.entered();
        let stays = |one: &Entered| one.kept.is_none();
        let mine = |one: &Entered| one.strand == me;
        let of_frame =
            entered.iter().rposition(|one| one.frame == frame && (mine(one) || !stays(one)));
        let of_stack = || entered.iter().rposition(|one| mine(one) && stays(one));
        let of_thread = || entered.iter().rposition(mine);
        let only = || (entered.len() == 1).then_some(0);
        let place = of_frame.or_else(of_stack).or_else(of_thread).or_else(only)?;
        let one = entered.remove(place);
        // The frame may be the last to keep something, whose end may enter another block.
        drop(entered);
        Some(one.guard)
    }
}

#[pymethods]
impl Blocks {
    #[new]
    #[pyo3(signature = (*_arguments, **_named))]
    fn new(_arguments: &Bound<'_, PyAny>, _named: Option<&Bound<'_, PyAny>>) -> Self {
        Self(Mutex::default())
    }

    /// A frame that is kept keeps this lock.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        let Ok(entered) = self.0.try_lock() else { return Ok(()) };
        entered.iter().try_for_each(|one| {
            visit.call(&one.kept)?;
            visit.call(&one.guard)
        })
    }

    fn __clear__(&self) {
        let entered = mem::take(&mut *self.entered());
        drop(entered);
    }

    fn __enter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        // First, so that nothing comes between the grant and its entry.
        let (frame, strand) = (frame(slf.py()), strand(slf.py()));
        let (place, kept) = (place(frame.as_ref()), frame.filter(wanders).map(Bound::unbind));
        let guard = slf.call_method0(interned(slf.py(), "acquire"))?;
        slf.get().entered().push(Entered {
            frame: place,
            kept,
            strand,
            guard: guard.clone().unbind(),
        });
        Ok(guard)
    }

    #[pyo3(signature = (*how))]
    fn __exit__(slf: &Bound<'_, Self>, how: &Bound<'_, PyTuple>) -> PyResult<()> {
        let guard = slf.get().leave(slf.py(), place(frame(slf.py()).as_ref())).ok_or_else(|| {
            let message = "another thread entered this block, and others are in blocks of this lock; \
                           use `with lock.acquire() as guard`";
            raised(&Error::new(Code::Invalid, message).with("argument", "with"))
        })?;
        end(guard.bind(slf.py()), how)
    }
}
