//! Scheduled jobs: at most one run in each period, whoever asks for it.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crate::algorithm::{Begun, Ending, JobRequest, micros_of, moment};
pub use crate::algorithm::{JobState, Schedule, Skipped, Status};
use crate::client::Client;
use crate::error::{Error, Result};
use crate::guard::{Claim, Guard, Pending};
use crate::options::{OptionScope, OptionValue, Options, full_name};
use crate::port::{CellKey, Family};
use crate::released::Released;
use crate::with_error::WithError;

/// A scheduled job, made by [`Client::job`]. Every process of the fleet asks for a run when its own schedule says so; one
/// of them gets it.
///
/// A run is named by its *scheduled instant*, the last one of its [`Schedule`] by the store's clock: a multiple of the period
/// (counted from 1970, UTC), or a time of the cron expression. So clocks that disagree mean the same run. A timer that fires a
/// little early, by a tenth of the period and 30 s at most, means the coming instant. A run starts only if its instant is later
/// than that of the last run and that one is over. With a period, half of it must also have passed since the last start: so a
/// timer that fires once in a period, at any time of it, runs once. A run that died is not run again, unless `retry_dead` says
/// so: it may have done its work.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// use fencelock::Reason;
/// use std::time::Duration;
/// let client = fencelock::connect("memory:job").await?;
/// let nightly = client.job("nightly", Duration::from_hours(24));
/// let clean_up = |token| async move { Ok::<_, std::io::Error>(format!("cleaned up under {token}")) };
/// for _ in 0..2 {
///     match nightly.with(|run| clean_up(run.token())).await? {
///         Ok(report) => println!("{report}"),
///         Err(skipped) => {
///             println!("nothing to do, {skipped}");
///             assert_eq!(skipped.reason, Reason::Done, "once a night is enough");
///         }
///     }
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
#[derive(Clone)]
pub struct Job {
    client: Client,
    name: Arc<str>,
    key: CellKey,
    schedule: Schedule,
    at: Option<SystemTime>,
    options: Options,
    /// The first mistake made in setting it up.
    mistake: Option<Error>,
}

impl Client {
    /// A scheduled job: at most one run in each period (a `Duration` of 10 ms or longer), or for each time of a cron expression,
    /// whoever asks for it; see [`Job`] and [`Schedule`].
    pub fn job(&self, name: &str, schedule: impl Into<Schedule>) -> Job {
        Job::new(self.clone(), name, schedule.into())
    }
}

impl Job {
    pub(crate) fn new(client: Client, name: &str, schedule: Schedule) -> Self {
        let options = client.options().clone();
        let (full, mistake) = full_name(&options.prefix, name);
        let (key, name) = (CellKey::new(Family::Job, full), name.into());
        Self { client, name, key, schedule, at: None, options, mistake }
    }

    /// Names the run by this instant of the scheduler's own, instead of the last one of the schedule by the store's clock. One
    /// that lies ahead of that clock by more than half a period, and a minute, is refused (`invalid`).
    pub fn at(mut self, instant: SystemTime) -> Self {
        self.at = Some(instant);
        self
    }

    /// The lease of the run's lock: so long after its last renewal a run counts as dead. 30 s by default; renewed at a third of
    /// it.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.options.ttl = ttl;
        self
    }

    /// The shortest time from the start of a run to the next one's, however soon it ends.
    pub fn at_least_for(mut self, time: Duration) -> Self {
        self.options.at_least_for = Some(time);
        self
    }

    /// The longest a run may take; then it is lost.
    pub fn at_most_for(mut self, time: Duration) -> Self {
        self.options.at_most_for = Some(time);
        self
    }

    /// Whether a run that died without an end may be run again, for the same instant.
    pub fn retry_dead(mut self, retry: bool) -> Self {
        self.options.retry_dead = retry;
        self
    }

    /// A short text, or texts by name as JSON, for people who inspect the job (`{"order":"42"}`).
    pub fn info(mut self, info: impl Into<String>) -> Self {
        self.options.info = info.into();
        self
    }

    /// Sets any option by its name in the [table](crate::options::TABLE).
    pub fn option(mut self, name: &str, value: impl Into<OptionValue>) -> Self {
        if let Err(mistake) = self.options.set_all([(name, value.into())], OptionScope::Job) {
            self.mistake.get_or_insert(mistake);
        }
        self
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Starts the run that is due. [`Skipped`] says why there is none: the last one is in progress, this one was run, or none
    /// is due.
    ///
    /// Dropping the future takes a run that was started back, as if nobody had asked.
    pub fn start(&self) -> Pending<Result<Run, Skipped>> {
        let job = self.clone();
        Pending::new(async move {
            let request = job.request()?;
            let engine = job.client.engine();
            let begun = engine.start_run(job.key.clone(), request).await;
            let begun = begun.map_err(|error| error.with("name", job.name()))?;
            Ok(begun.map(|begun| {
                let claim = Claim::new(engine.clone(), job.name.clone(), begun.local());
                Run { guard: Guard::of(claim), begun }
            }))
        })
    }

    /// Runs `body` if a run is due; answers [`Skipped`] if none is. What the body answers decides whether the run succeeded.
    /// When the run is lost, the body is dropped at its next await, and the answer is an error with code `lost`. An error of
    /// the body's own wins, and the loss is attached to it ([`WithError`]).
    pub fn with<T, E, F, B>(
        &self,
        body: B,
    ) -> impl Future<Output = Result<Result<T, Skipped>, WithError<E>>> + use<T, E, F, B>
    where
        F: Future<Output = Result<T, E>>,
        B: FnOnce(RunClaim) -> F,
    {
        let start = self.start();
        async move {
            let run = match start.await? {
                Ok(run) => run,
                Err(skipped) => return Ok(Err(skipped)),
            };
            let claim = run.claim();
            let ended = claim.during(|_| body(claim.clone())).await?;
            // As for a lock: a body whose hold was lost is no success.
            let held = claim.check();
            let _ = if ended.is_ok() { run.succeed().await } else { run.fail().await };
            WithError::judge(ended, held).map(Ok)
        }
    }

    /// The last run, as the store remembers it.
    pub async fn inspect(&self) -> Result<Option<JobState>> {
        self.request()?;
        self.client.engine().job_state(&self.key).await
    }

    fn request(&self) -> Result<JobRequest> {
        if let Some(mistake) = &self.mistake {
            return Err(mistake.clone());
        }
        let options = &self.options;
        options.check()?;
        Ok(JobRequest {
            times: self.schedule.clone().into_times()?,
            at: self.at.map(micros_of),
            ttl: options.ttl,
            at_least: options.at_least_for.unwrap_or_default(),
            at_most: options.at_most_for,
            retry_dead: options.retry_dead,
            patience: options.timeout * 2,
            info: self.client.info(&options.info),
        })
    }
}

/// A run of a job: a [`Guard`] that ends with how it went. Dropping it marks it as failed; [`Run::succeed`] and [`Run::fail`] wait for
/// the answer.
#[must_use = "dropping a run marks it as failed"]
pub struct Run {
    /// It frees nothing: `begun` does.
    pub(crate) guard: Guard,
    pub(crate) begun: Begun,
}

/// A read-only handle of a run. It can be cloned, and outlive the run.
#[derive(Clone, Debug)]
pub struct RunClaim {
    claim: Claim,
    instant: u64,
}

impl RunClaim {
    /// The scheduled instant.
    pub fn instant(&self) -> SystemTime {
        moment(self.instant)
    }
}

impl std::ops::Deref for RunClaim {
    type Target = Claim;

    fn deref(&self) -> &Claim {
        &self.claim
    }
}

impl Run {
    /// A look at this run for somebody else: a task that writes, a signal that fires when the run is lost.
    pub fn claim(&self) -> RunClaim {
        RunClaim { claim: self.guard.claim(), instant: self.begun.instant }
    }

    /// The scheduled instant.
    pub fn instant(&self) -> SystemTime {
        moment(self.begun.instant)
    }

    /// Marks the run as succeeded and tells how that went. `AlreadyLost`: it counted as dead before. A store that does not
    /// answer is asked again until the run's lease ends. The call itself ends the run; whoever drops the future does without the
    /// answer.
    pub fn succeed(self) -> impl Future<Output = Released> + use<> {
        self.begun.end(Ending::Succeeded)
    }

    /// Leaves the run to others, as if it had not begun.
    pub(crate) fn take_back(self) {
        self.begun.take_back();
    }

    /// Marks the run as failed, as [`Run::succeed`] does otherwise.
    pub fn fail(self) -> impl Future<Output = Released> + use<> {
        self.begun.end(Ending::Failed)
    }
}

impl std::ops::Deref for Run {
    type Target = Guard;

    fn deref(&self) -> &Guard {
        &self.guard
    }
}

impl fmt::Debug for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Job")
            .field("name", &self.name())
            .field("schedule", &self.schedule)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.claim().fmt(f)
    }
}
