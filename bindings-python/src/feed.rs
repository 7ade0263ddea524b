//! The events of one client, on their way to the thread that tells its observer.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use fencelock::{Event, facade};
use pyo3::exceptions::PyBaseException;
use pyo3::prelude::*;

use crate::process::{self, Own};
use crate::{Outcome, caught, tried};

/// The end where events happen. When neither the connection nor its client is left, nothing can happen any more.
pub(crate) struct Teller {
    feed: Arc<facade::Feed>,
    given: AtomicBool,
    /// Whether events that are no warnings are wanted too.
    all: AtomicBool,
}

impl Default for Teller {
    fn default() -> Self {
        let feed = Arc::new(facade::Feed::default());
        feed.listen(true);
        Self { feed, given: AtomicBool::new(false), all: AtomicBool::new(false) }
    }
}

impl Teller {
    pub(crate) fn tell(&self, event: &Event) {
        if event.kind.is_warning() || self.all.load(Ordering::Acquire) {
            self.feed.push(event);
        }
    }

    /// The other end, once: for all events, or warnings only.
    pub(crate) fn feed(&self, all: bool) -> Option<Feed> {
        self.all.fetch_or(all, Ordering::AcqRel);
        let first = !self.given.swap(true, Ordering::AcqRel);
        first.then(|| Feed(Own::new(self.feed.clone())))
    }
}

impl Drop for Teller {
    fn drop(&mut self) {
        self.feed.listen(false);
    }
}

/// The end where a thread of Python's waits. In the child of a fork nothing comes out of it.
#[pyclass(frozen, module = "fencelock._native")]
pub(crate) struct Feed(Own<Arc<facade::Feed>>);

#[pymethods]
impl Feed {
    /// Waits for events and answers a list of them; an empty one when there will never be any more.
    fn news(&self, py: Python<'_>) -> PyResult<Outcome> {
        let feed = tried(|| self.0.get().cloned())?;
        let news = Box::pin(async move { Ok(feed.news().await) });
        caught(|| process::run(py, news)).flatten().map(Outcome::Answer)
    }

    /// Nothing more is kept; what has happened until now can still be asked for.
    fn end(&self) -> PyResult<()> {
        caught(|| self.0.get().map(|feed| feed.listen(false)).unwrap_or_default())
    }
}

/// Hands an exception that nobody can catch to `sys.unraisablehook`, with the object that raised it.
#[pyfunction]
pub(crate) fn unraisable(error: Bound<'_, PyBaseException>, by: &Bound<'_, PyAny>) {
    let py = by.py();
    PyErr::from_value(error.into_any()).write_unraisable(py, Some(by));
}
