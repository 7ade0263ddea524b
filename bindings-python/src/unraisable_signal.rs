//! Errors that are raised where nobody can catch them: in a warning that is given while something is dropped.

use std::ffi::{c_int, c_void};

use pyo3::exceptions::{PyMemoryError, PyRecursionError, PyWarning};
use pyo3::ffi;
use pyo3::prelude::*;

use crate::process::is_told_of_signals;

/// Tells of it. A warning that is an error, and what the interpreter itself raises, go to `sys.unraisablehook`. Anything else
/// is a signal's handler's, as Ctrl-C is: the main thread has it at its next step, as if the signal had come then.
pub(crate) fn tell(py: Python<'_>, error: PyErr) {
    let ours = error.is_instance_of::<PyWarning>(py)
        || error.is_instance_of::<PyRecursionError>(py)
        || error.is_instance_of::<PyMemoryError>(py);
    if ours || !is_told_of_signals() {
        return error.write_unraisable(py, None);
    }
    let kept = Box::into_raw(Box::new(error));
    #[expect(unsafe_code, reason = "there is no other way to raise in the main thread later")]
    // SAFETY: the interpreter's lock is held. It calls `raise` once with the box, or refuses it, and then it is ours again.
    let refused = unsafe {
        let full = ffi::Py_AddPendingCall(Some(raise), kept.cast()) != 0;
        full.then(|| Box::from_raw(kept))
    };
    if let Some(error) = refused {
        error.write_unraisable(py, None);
    }
}

#[expect(unsafe_code, reason = "the interpreter gives back the pointer it was given")]
extern "C" fn raise(error: *mut c_void) -> c_int {
    // SAFETY: it comes from `Box::into_raw` in `tell`, and the interpreter calls this once for it, with its lock held.
    let error = unsafe { Box::from_raw(error.cast::<PyErr>()) };
    Python::attach(|py| error.restore(py));
    -1
}
