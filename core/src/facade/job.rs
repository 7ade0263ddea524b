//! Operations on scheduled jobs.

use std::time::{Duration, UNIX_EPOCH};

use serde_json::json;

use super::client::{Facade, Named, Work, with_options};
use super::held::HeldItem;
use super::operation::{JobTimes, time};

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
