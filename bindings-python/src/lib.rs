//! The native part of fencelock's Python package: connects, submits, drains. It holds no lock logic, and what users touch
//! is written in Python beside it.
//!
//! An operation is read once, however often it is asked for. Grants cross as objects that decline what they stand for when
//! nobody has them any more, all other results as Python's own values. Errors are raised; one of an operation that a pump
//! drains is answered as the exception.

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
    use super::connection::{Connection, Request, Scope, check, close_all};
    #[pymodule_export]
    use super::feed::{Feed, unraisable};
    #[pymodule_export]
    use super::fork::{after_fork, before_fork};
    #[pymodule_export]
    use super::grant::Grant;
    #[pymodule_export]
    use super::pump::Pump;

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
use std::sync::Arc;

use fencelock::facade::{self, Answer};
use fencelock::{Error, Result};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use serde_json::{Value, json};

use crate::connection::Link;
use crate::grant::Grant;

/// The result of an operation, as Python takes it.
pub(crate) enum Outcome {
    Grant(Grant),
    Answer(Answer),
    /// Not raised, but the exception itself.
    Error(Error),
}

impl Outcome {
    /// Of a client whose operation it was, if that may grant something.
    pub(crate) fn of(answer: Answer, link: Option<&Arc<Link>>) -> Self {
        match (answer, link) {
            (Answer::Granted(granted), Some(link)) => {
                Self::Grant(Grant::new(link.clone(), granted))
            }
            (answer, _) => Self::Answer(answer),
        }
    }
}

impl<'py> IntoPyObject<'py> for Outcome {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Self::Output> {
        match self {
            Self::Grant(grant) => Ok(Bound::new(py, grant)?.into_any()),
            Self::Answer(Answer::Value(value)) => python(py, &value),
            Self::Answer(answer) => python(py, &json!(answer)),
            Self::Error(error) => raised(&error).into_value(py).into_bound_py_any(py),
        }
    }
}

/// A value of JSON as one of Python's.
fn python<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    match value {
        Value::Null => Ok(py.None().into_bound(py)),
        Value::Bool(truth) => truth.into_bound_py_any(py),
        Value::Number(number) => match (number.as_u64(), number.as_i64()) {
            (Some(whole), _) => whole.into_bound_py_any(py),
            (None, Some(whole)) => whole.into_bound_py_any(py),
            (None, None) => number.as_f64().into_bound_py_any(py),
        },
        Value::String(text) => text.into_bound_py_any(py),
        Value::Array(values) => {
            let list = PyList::empty(py);
            values.iter().try_for_each(|value| list.append(python(py, value)?))?;
            Ok(list.into_any())
        }
        Value::Object(fields) => {
            let dict = PyDict::new(py);
            fields.iter().try_for_each(|(name, value)| dict.set_item(name, python(py, value)?))?;
            Ok(dict.into_any())
        }
    }
}

/// Runs the code of a native. A panic in it is a defect of ours, and becomes the package's exception for one.
pub(crate) fn caught<T>(act: impl FnOnce() -> T) -> PyResult<T> {
    catch_unwind(AssertUnwindSafe(act)).map_err(|panic| raised(&facade::defect(&*panic)))
}

/// The same for what may fail.
pub(crate) fn tried<T>(act: impl FnOnce() -> Result<T>) -> PyResult<T> {
    caught(act)?.map_err(|error| raised(&error))
}

pub(crate) fn raised(error: &Error) -> PyErr {
    Python::attach(|py| {
        let (code, message) = (error.code().as_str(), error.text());
        let facts = (code, message, error.retryable(), error.fields().clone());
        let made =
            py.import("fencelock.errors").and_then(|errors| errors.call_method1("of_core", facts));
        made.map_or_else(|failed| failed, PyErr::from_value)
    })
}
