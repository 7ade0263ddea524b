//! Names of Python's attributes and modules.

use pyo3::prelude::*;
use pyo3::types::PyString;

/// The one string of this text. Not pyo3's `intern!`: that leaves the interpreter when it makes a string for the first time, and a
/// fork at that moment leaves its child waiting for a thread that it does not have.
pub(crate) fn interned<'py>(py: Python<'py>, text: &str) -> Bound<'py, PyString> {
    PyString::intern(py, text)
}
