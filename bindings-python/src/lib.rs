//! The native part of fencelock's Python package: connects, submits, drains. It holds no lock logic, and what users touch
//! is written in Python beside it.
//!
//! Operations and their results cross as JSON text, grants as objects that decline what they stand for when nobody has
//! them any more. An error is a result too, and becomes the package's exception in Python. Raised is only what a signal's
//! handler raises, and `InternalError` for a panic.

mod block;
mod connection;
mod feed;
mod fork;
mod grant;
mod greenlets;
mod interned;
mod process;
mod pump;
mod unraisable_signal;
mod wake_fd;

/// The module `fencelock._native`.
#[pyo3::pymodule(gil_used = false)]
mod _native {
    #[pymodule_export]
    use super::block::{Block, Blocks};
    #[pymodule_export]
    use super::connection::{Connection, Scope, check, close_all};
    #[pymodule_export]
    use super::feed::{Feed, unraisable};
    #[pymodule_export]
    use super::fork::{after_fork, before_fork};
    #[pymodule_export]
    use super::grant::{Grant, lost_before_release};
    #[pymodule_export]
    use super::pump::{Pump, panic};

    use fencelock::options::TABLE;
    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        super::process::refuse_subinterpreter(module.py())
    }

    /// The table of options as JSON: name, kind, default, scope and meaning of each.
    #[pyfunction]
    fn options() -> String {
        serde_json::to_string(TABLE).unwrap_or_default()
    }
}

use std::panic::{AssertUnwindSafe, catch_unwind};

use fencelock::{Error, Result, facade};
use pyo3::prelude::*;
use serde_json::{Value, json};

use crate::grant::Grant;

/// How an operation ended, as Python takes it: whether well, and what came of it.
pub(crate) type Ended = (bool, Outcome);

/// A grant; any other result, or the error, as JSON text.
#[derive(IntoPyObject)]
pub(crate) enum Outcome {
    Grant(Grant),
    Text(String),
}

/// A result as it crosses.
pub(crate) fn ended(result: Result<Value>) -> Ended {
    match result {
        Ok(value) => (true, Outcome::Text(value.to_string())),
        Err(error) => (false, Outcome::Text(json!(error).to_string())),
    }
}

/// The number of an operation, or its error as JSON.
pub(crate) fn numbered(submitted: Result<u64>) -> (Option<u64>, String) {
    match submitted {
        Ok(number) => (Some(number), String::new()),
        Err(error) => (None, json!(error).to_string()),
    }
}

/// What a native does. A panic in it is a defect of ours, and becomes the package's exception for one.
pub(crate) fn caught<T>(act: impl FnOnce() -> T) -> PyResult<T> {
    catch_unwind(AssertUnwindSafe(act)).map_err(|panic| raised(&facade::defect(&*panic)))
}

pub(crate) fn raised(error: &Error) -> PyErr {
    Python::attach(|py| {
        let made = py
            .import("fencelock.errors")
            .and_then(|errors| errors.call_method1("from_json", (json!(error).to_string(),)));
        made.map_or_else(|failed| failed, PyErr::from_value)
    })
}
