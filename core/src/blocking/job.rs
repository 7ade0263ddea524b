//! Scheduled jobs, for threads.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use super::lock::{Guard, refused};
use crate::algorithm::{Begun, Ending, moment};
use crate::error::Result;
use crate::job::{JobState, Skipped};
use crate::options::OptionValue;
use crate::released::Released;
use crate::runtime::InlineRuntime;
use crate::with_error::WithError;

/// A scheduled job, for threads; see [`fencelock::Job`](crate::Job).
///
/// ```
/// use std::time::Duration;
/// let client = fencelock::blocking::connect("memory:")?;
/// let job = client.job("nightly", Duration::from_hours(24));
/// let ran = job.with(|run| Ok::<_, std::io::Error>(run.token()))?;
/// assert!(ran.is_ok());
/// let skipped = job.start()?.expect_err("once a night is enough");
/// assert_eq!(skipped.reason, fencelock::Reason::Done);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Job {
    pub(super) inner: crate::Job,
    pub(super) runtime: Arc<InlineRuntime>,
}

impl Job {
    setters! {
        /// Names the run by this instant of the scheduler's own.
        at(instant: SystemTime);
        /// After how long without a sign of life a run counts as dead; 30 s by default.
        ttl(ttl: Duration);
        /// The shortest time from the start of a run to the start of the next one.
        at_least_for(time: Duration);
        /// The longest time a run may take. After that it is lost.
        at_most_for(time: Duration);
        /// Whether a run that died may be run again, for the same instant.
        retry_dead(retry: bool);
        /// A short text, or texts by name as JSON, for people who look at the last run.
        info(info: impl Into<String>);
        /// Sets any option by its name in the [table](crate::options::TABLE).
        option(name: &str, value: impl Into<OptionValue>);
    }

    /// The name.
    pub fn name(&self) -> &str {
        self.inner.name()
    }

    /// Starts the run that is due. [`Skipped`] says why there is none: the last one is in progress, this one was run, or none
    /// is due.
    pub fn start(&self) -> Result<Result<Run, Skipped>> {
        let run = self.runtime.run(self.inner.start())??;
        Ok(run.map(|crate::Run { guard, begun }| Run {
            guard: Guard::of(guard, &self.runtime),
            begun,
        }))
    }

    /// Runs `body` if a run is due; answers [`Skipped`] if none is. If the run was lost meanwhile, the answer is an error with
    /// code `lost`; the body can look at its run to learn it earlier. An error of the body's own wins, and the loss is
    /// attached to it ([`WithError`]).
    pub fn with<T, E>(
        &self,
        body: impl FnOnce(&Run) -> Result<T, E>,
    ) -> Result<Result<T, Skipped>, WithError<E>> {
        let run = match self.start()? {
            Ok(run) => run,
            Err(skipped) => return Ok(Err(skipped)),
        };
        run.check()?;
        let ended = body(&run);
        let held = run.check();
        let _ = if ended.is_ok() { run.succeed() } else { run.fail() };
        WithError::judge(ended, held).map(Ok)
    }

    /// The last run, as the store remembers it.
    pub fn inspect(&self) -> Result<Option<JobState>> {
        self.runtime.run(self.inner.inspect())?
    }
}

/// A run of a job, for threads: a [`Guard`] that ends with how it went. Dropping it marks it as failed in the background.
#[must_use = "dropping a run marks it as failed"]
pub struct Run {
    guard: Guard,
    begun: Begun,
}

impl Run {
    /// The scheduled instant.
    pub fn instant(&self) -> SystemTime {
        moment(self.begun.instant)
    }

    /// Marks the run as succeeded and tells how that went.
    pub fn succeed(self) -> Released {
        self.guard.runtime.run(self.begun.end(Ending::Succeeded)).unwrap_or_else(refused)
    }

    /// Marks the run as failed.
    pub fn fail(self) -> Released {
        self.guard.runtime.run(self.begun.end(Ending::Failed)).unwrap_or_else(refused)
    }
}

impl std::ops::Deref for Run {
    type Target = Guard;

    fn deref(&self) -> &Guard {
        &self.guard
    }
}

impl fmt::Debug for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.guard.fmt(f)
    }
}
