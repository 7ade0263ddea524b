//! Scheduled jobs, for threads.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use crate::error::Result;
use crate::job::{JobState, RunClaim};
use crate::released::Released;
use crate::runtime::InlineRuntime;

/// A scheduled job, for threads; see [`fencelock::Job`](crate::Job).
///
/// ```
/// use std::time::Duration;
/// let client = fencelock::blocking::connect("memory:")?;
/// let job = client.job("nightly", Duration::from_hours(24));
/// let ran = job.with(|run| Ok::<_, ()>(run.token()))?;
/// assert!(ran.is_some());
/// assert!(job.start()?.is_none(), "once a night is enough");
/// # Ok::<(), fencelock::Error>(())
/// ```
#[derive(Clone)]
pub struct Job {
    pub(super) inner: crate::Job,
    pub(super) runtime: Arc<InlineRuntime>,
}

impl Job {
    /// Names the run by this instant of the scheduler's own, as the time since 1970 (UTC).
    pub fn at(self, instant: Duration) -> Self {
        Self { inner: self.inner.at(instant), runtime: self.runtime }
    }

    /// Sets any option by its name in the [table](crate::options::TABLE).
    pub fn option(self, name: &str, value: impl Into<Value>) -> Self {
        Self { inner: self.inner.option(name, value), runtime: self.runtime }
    }

    /// Starts the run that is due. `None` if that was started before, or the last one still lasts.
    pub fn start(&self) -> Result<Option<Run>> {
        let run = self.runtime.run(self.inner.start())??;
        Ok(run.map(|inner| Run { inner, runtime: self.runtime.clone() }))
    }

    /// Runs `body` if a run is due; `None` if it is not. If the run was lost meanwhile, the answer is an error with code
    /// `lost`; the body can look at its claim to learn it earlier.
    pub fn with<T, E>(
        &self,
        body: impl FnOnce(&RunClaim) -> Result<T, E>,
    ) -> Result<Option<Result<T, E>>> {
        let Some(run) = self.start()? else { return Ok(None) };
        let value = body(&run);
        let held = run.check();
        let _ = if value.is_ok() { run.succeed() } else { run.fail() };
        held.map(|()| Some(value))
    }

    /// The last run, as the store remembers it.
    pub fn inspect(&self) -> Result<Option<JobState>> {
        self.runtime.run(self.inner.inspect())?
    }
}

/// A run of a job, for threads. Dropping it marks it as failed in the background.
#[must_use = "dropping a run marks it as failed"]
pub struct Run {
    inner: crate::Run,
    runtime: Arc<InlineRuntime>,
}

impl Run {
    /// Marks the run as succeeded and tells how that went.
    pub fn succeed(self) -> Released {
        // Refused only inside an async runtime; then the run is dropped, which marks it as failed.
        self.runtime.run(self.inner.succeed()).unwrap_or(Released::Unconfirmed)
    }

    /// Marks the run as failed.
    pub fn fail(self) -> Released {
        self.runtime.run(self.inner.fail()).unwrap_or(Released::Unconfirmed)
    }
}

impl std::ops::Deref for Run {
    type Target = RunClaim;

    fn deref(&self) -> &RunClaim {
        &self.inner
    }
}

impl fmt::Debug for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

impl fmt::Debug for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}
