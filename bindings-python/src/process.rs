//! The parts that belong to one process: its runtime, and everything that must not follow into the child of a fork.

use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::time::Duration;

use fencelock::facade::{Answer, Facade, Operation};
use fencelock::port::{BoxFuture, RuntimeHandle};
use fencelock::runtime::{TokioRuntime, process_id};
use fencelock::{Code, Error, Result};
use pyo3::exceptions::PyImportError;
use pyo3::ffi;
use pyo3::prelude::*;
use serde_json::Value;
use tokio::runtime::{Builder, Handle, Runtime};

use crate::greenlets::Greenlets;
use crate::{raised, tried};

/// How soon a waiting main thread sees a signal.
const TICK: Duration = Duration::from_millis(50);

/// A process and its runtime. It is never freed: the threads of one that was inherited by a fork do not exist, and waiting
/// for them would never end.
struct Process {
    id: u32,
    runtime: Runtime,
}

static PROCESS: AtomicPtr<Process> = AtomicPtr::new(std::ptr::null_mut());

/// The runtime of this very process, made at the first call. Free of locks, which a fork could leave locked for ever.
pub(crate) fn runtime() -> Result<Handle> {
    let id = process_id();
    let known = PROCESS.load(Ordering::Acquire);
    if let Some(process) = leaked(known).filter(|process| process.id == id) {
        return Ok(process.runtime.handle().clone());
    }
    let runtime = Builder::new_multi_thread()
        .worker_threads(1)
        .thread_name("fencelock")
        .enable_all()
        .build()
        .map_err(|error| {
            let message = "the operating system gave no threads or timers";
            Error::new(Code::Unavailable, message).with_source(error)
        })?;
    let mine = Box::into_raw(Box::new(Process { id, runtime }));
    // Whoever comes second takes the first one's; the runtime made in vain is as good as any other thread that sleeps.
    let first = PROCESS.compare_exchange(known, mine, Ordering::AcqRel, Ordering::Acquire);
    let process = leaked(first.map_or_else(|there| there, |_| mine));
    process.map(|process| process.runtime.handle().clone()).ok_or_else(forked)
}

#[expect(unsafe_code, reason = "what the pointer shows to is never freed and never changed")]
fn leaked(process: *mut Process) -> Option<&'static Process> {
    // SAFETY: it is null or comes from `Box::into_raw`, and nobody frees it.
    unsafe { process.as_ref() }
}

/// The answer to whoever uses what another process has made.
pub(crate) fn forked() -> Error {
    let message = "this belongs to the process that forked this one; connect again here";
    Error::new(Code::Closed, message)
}

/// Something of this process. In the child of a fork it is inert: it is neither used nor dropped there.
pub(crate) struct Own<T> {
    process: u32,
    value: Option<T>,
}

impl<T> Own<T> {
    pub(crate) fn new(value: T) -> Self {
        Self { process: process_id(), value: Some(value) }
    }

    /// Whether this is the process that made it.
    pub(crate) fn is_here(&self) -> bool {
        self.process == process_id()
    }

    pub(crate) fn get(&self) -> Result<&T> {
        self.value.as_ref().filter(|_| self.is_here()).ok_or_else(forked)
    }
}

impl<T> Drop for Own<T> {
    fn drop(&mut self) {
        if !self.is_here() {
            mem::forget(self.value.take());
        }
    }
}

/// Types, and what a thread is attached to, are the process's: where an interpreter beside the main one may load what does not
/// say that it cannot be shared (before 3.12, and where it is told to), it would work until two of them meet.
pub(crate) fn refuse_subinterpreter(_: Python<'_>) -> PyResult<()> {
    #[expect(unsafe_code, reason = "there is no safe way to ask for an interpreter's number")]
    // SAFETY: this thread is attached, so there is a current interpreter.
    let number = unsafe { ffi::PyInterpreterState_GetID(ffi::PyInterpreterState_Get()) };
    if number == 0 {
        return Ok(());
    }
    let message = "fencelock works in the main interpreter of a process only; import it there (mod_wsgi: \
                   `WSGIApplicationGroup %{GLOBAL}`), or use processes";
    Err(PyImportError::new_err(message))
}

/// Whether the handlers of signals may run on this thread: only on the main one.
#[cfg(target_os = "linux")]
pub(crate) fn is_told_of_signals() -> bool {
    rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs() == process_id()
}

/// Elsewhere that cannot be said: the interpreter passes over who is not told.
#[cfg(not(target_os = "linux"))]
pub(crate) fn is_told_of_signals() -> bool {
    true
}

/// Whether a signal came whose handler raises.
fn look(py: Python<'_>) -> PyResult<()> {
    py.check_signals()
}

/// Does an operation of a client and waits for its end.
pub(crate) fn perform(py: Python<'_>, facade: &Facade, operation: Operation) -> PyResult<Answer> {
    match Greenlets::here(py)? {
        Some(greenlets) => greenlets.wait(|pump| pump.submit(facade, operation)),
        None => block(py, facade.perform(operation)),
    }
}

/// Does anything else and waits for its end.
pub(crate) fn run(py: Python<'_>, work: BoxFuture<'static, Result<Value>>) -> PyResult<Answer> {
    match (Greenlets::here(py)?, runtime()) {
        (Some(greenlets), Ok(runtime)) => {
            let runtime: RuntimeHandle = Arc::new(TokioRuntime::of(runtime));
            greenlets.wait(|pump| pump.run(&runtime, work))
        }
        _ => block(py, work).map(Answer::Value),
    }
}

/// Runs work to its end while other Python threads go on. A signal whose handler raises, as Ctrl-C does, ends it: the work
/// is dropped, and what it had won is given back.
fn block<T: Send>(py: Python<'_>, work: BoxFuture<'static, Result<T>>) -> PyResult<T> {
    let runtime = tried(runtime)?;
    let ended: PyResult<Result<T>> = py.detach(|| {
        let mut work = std::pin::pin!(work);
        loop {
            let ended = runtime.block_on(async { tokio::time::timeout(TICK, &mut work).await });
            match ended {
                Ok(result) => return Ok(result),
                Err(_) if is_told_of_signals() => Python::attach(look)?,
                Err(_) => return Ok(runtime.block_on(work)),
            }
        }
    });
    ended?.map_err(|error| raised(&error))
}
