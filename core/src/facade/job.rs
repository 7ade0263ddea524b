//! Operations on scheduled jobs.

use std::time::Duration;

use serde_json::json;

use super::held::HeldItem;
use super::{Facade, Named, Work, with_options};
use crate::port::BoxFuture;
use crate::released::Released;

impl Facade {
    pub(super) fn start_job(
        &self,
        name: &str,
        period: f64,
        at: Option<f64>,
        options: Named,
    ) -> Work {
        let job = self.client.job(name, time(period));
        let job = with_options(job, options, crate::Job::option);
        let job = match at {
            Some(at) => job.at(time(at)),
            None => job,
        };
        Box::pin(async move {
            match job.start().await? {
                Ok(run) => Ok(HeldItem::Run(run).into()),
                Err(skipped) => Ok(json!({ "skipped": skipped }).into()),
            }
        })
    }

    pub(super) fn end_job(&self, guard: u64, succeeded: bool) -> Work {
        // At once: whoever gives up waiting for the answer has said how it ended.
        let ending = self.take(guard, HeldItem::run).map(|run| -> BoxFuture<'static, Released> {
            if succeeded { Box::pin(run.succeed()) } else { Box::pin(run.fail()) }
        });
        Box::pin(async move { Ok(ending?.await.into()) })
    }

    pub(super) fn inspect_job(&self, name: &str, period: f64) -> Work {
        let job = self.client.job(name, time(period));
        Box::pin(async move { Ok(json!(job.inspect().await?).into()) })
    }
}

/// A time in milliseconds. One that is none is refused as zero.
fn time(millis: f64) -> Duration {
    Duration::try_from_secs_f64(millis / 1000.0).unwrap_or_default()
}
