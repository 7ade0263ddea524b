//! The native part of fencelock's Python package: connects, submits, drains. It holds no lock logic, and what users touch
//! is written in Python beside it.
//!
//! Operations and their results cross as JSON text, guards as numbers. Nothing here raises: an error is a result too, and
//! becomes the package's exception in Python.

mod bell;
mod connection;
mod feed;
mod process;
mod pump;

/// The module `fencelock._native`.
#[pyo3::pymodule(gil_used = false)]
mod _native {
    #[pymodule_export]
    use super::connection::{Connection, check, close_all};
    #[pymodule_export]
    use super::feed::{Feed, unraisable};
    #[pymodule_export]
    use super::pump::Pump;

    use fencelock::options::TABLE;
    use pyo3::pyfunction;

    /// The table of options as JSON: name, kind, default, scope and meaning of each.
    #[pyfunction]
    fn options() -> String {
        serde_json::to_string(TABLE).unwrap_or_default()
    }
}

use fencelock::Result;
use serde_json::{Value, json};

/// How an operation ended, as Python takes it: whether well, and the result or the error as JSON text.
pub(crate) type Ended = (bool, String);

/// A result as it crosses.
pub(crate) fn ended(result: Result<Value>) -> Ended {
    match result {
        Ok(value) => (true, value.to_string()),
        Err(error) => (false, json!(error).to_string()),
    }
}
