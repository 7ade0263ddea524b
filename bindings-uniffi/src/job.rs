//! Scheduled jobs and their runs.

use std::sync::Arc;
use std::time::SystemTime;

use crate::Result;
use crate::guard::{Guard, Held, Released};
use crate::process::{ask, run};

/// A scheduled job: at most one run in each period, or for each time of a cron expression.
#[derive(uniffi::Object)]
pub struct ScheduledJob(pub(crate) fencelock::Job);

/// The answer of a start.
#[derive(uniffi::Enum)]
pub enum Start {
    /// The run that is due.
    Started {
        /// The run.
        run: Arc<Run>,
    },
    /// There is none.
    Skipped {
        /// `running`, `done` or `not_due`.
        reason: String,
        /// The earliest time at which it is worth asking again; none if only the scheduler knows.
        next_at: Option<SystemTime>,
        /// The last run, as JSON.
        last: String,
    },
}

/// A run of a job. Freeing it marks it as failed.
#[derive(uniffi::Object)]
pub struct Run {
    guard: Arc<Guard>,
    instant: SystemTime,
}

#[uniffi::export]
impl ScheduledJob {
    /// Starts the run that is due, or the one of this instant of the scheduler's own.
    #[uniffi::method(default(at = None))]
    pub async fn start(&self, at: Option<SystemTime>) -> Result<Start> {
        let job = at.map_or_else(|| self.0.clone(), |at| self.0.clone().at(at));
        Ok(match run(job.start()).await? {
            Ok(run) => {
                let instant = run.instant();
                let guard = Arc::new(Held::Run(run).into());
                Start::Started { run: Arc::new(Run { guard, instant }) }
            }
            Err(skipped) => Start::Skipped {
                reason: skipped.reason.to_string(),
                next_at: skipped.next,
                last: serde_json::json!(skipped.last).to_string(),
            },
        })
    }

    /// The last run, as JSON; `null` if there was none.
    pub async fn last_run(&self) -> Result<String> {
        ask!(self.0, job => job.inspect().await.map(|last| serde_json::json!(last).to_string()))
    }
}

#[uniffi::export]
impl Run {
    /// The guard of this run: token, time left, loss. Its release marks the run as failed.
    pub fn guard(&self) -> Arc<Guard> {
        self.guard.clone()
    }

    /// The scheduled instant.
    pub fn instant(&self) -> SystemTime {
        self.instant
    }

    /// Marks the run as succeeded and tells how that went.
    pub async fn succeed(&self) -> Result<Released> {
        self.guard.end(true).await
    }

    /// Marks the run as failed and tells how that went.
    pub async fn fail(&self) -> Result<Released> {
        self.guard.end(false).await
    }
}
