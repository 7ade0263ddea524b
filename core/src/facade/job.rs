//! Operations on scheduled jobs.

use std::time::{Duration, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::held::HeldItem;
use super::{Facade, Named, Work, with_options};
use crate::error::{Error, Result};
use crate::job::Schedule;

/// The times at which a job is due, as the languages say them: a period in milliseconds, or a cron expression and its time zone.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct JobTimes {
    /// The period.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub period: Option<f64>,
    /// The cron expression.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cron: Option<String>,
    /// Its time zone; UTC without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timezone: Option<String>,
}

impl JobTimes {
    /// The schedule, if exactly one is given.
    pub fn schedule(&self) -> Result<Schedule> {
        let schedule = match (self.period, &self.cron) {
            (Some(period), None) => Schedule::from(time(period)),
            (None, Some(cron)) => Schedule::cron(cron),
            (Some(_), Some(_)) => {
                let message = "`period` and `cron` are both given; leave one out: `cron` names times of day, `0 3 * * *` for instance";
                return Err(Error::invalid("cron", message));
            }
            (None, None) => {
                let message = "a job needs a `period`, 3600 s for instance, or a `cron` expression such as `0 3 * * *`";
                return Err(Error::invalid("period", message));
            }
        };
        Ok(match &self.timezone {
            Some(zone) => schedule.timezone(zone),
            None => schedule,
        })
    }
}

impl Facade {
    pub(super) fn start_job(
        &self,
        name: &str,
        times: &JobTimes,
        at: Option<f64>,
        options: Named,
    ) -> Work {
        let schedule = match times.schedule() {
            Ok(schedule) => schedule,
            Err(error) => return Box::pin(async move { Err(error) }),
        };
        let job = self.client.job(name, schedule);
        let job = with_options(job, options, crate::Job::option);
        let job = match at {
            Some(at) => job.at(UNIX_EPOCH.checked_add(time(at)).unwrap_or(UNIX_EPOCH)),
            None => job,
        };
        Box::pin(async move {
            match job.start().await? {
                Ok(run) => Ok(HeldItem::Run(run).into()),
                Err(skipped) => Ok(json!({ "skipped": skipped }).into()),
            }
        })
    }

    pub(super) fn inspect_job(&self, name: &str) -> Work {
        // A look does not depend on the schedule.
        let job = self.client.job(name, Duration::from_hours(1));
        Box::pin(async move { Ok(json!(job.inspect().await?).into()) })
    }
}

/// A time in milliseconds. One that is none is refused as zero.
fn time(millis: f64) -> Duration {
    Duration::try_from_secs_f64(millis / 1000.0).unwrap_or_default()
}
