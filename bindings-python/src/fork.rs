//! Hooks around a fork: no SQLite file of ours is open then. The thread that forks keeps the others from opening one.

use std::cell::RefCell;

use fencelock::driver::sqlite::{Stillness, still};
use pyo3::prelude::*;

thread_local! {
    static STILLNESS: RefCell<Option<Stillness>> = const { RefCell::new(None) };
}

/// Right before a fork, in the thread that forks.
#[pyfunction]
pub(crate) fn before_fork(py: Python<'_>) {
    // Another thread that forks may need the interpreter's lock to get on.
    py.detach(|| STILLNESS.set(Some(still())));
}

/// Right after it, in both processes.
#[pyfunction]
pub(crate) fn after_fork() {
    STILLNESS.take();
}
