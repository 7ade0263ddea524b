//! `fencelock job`: a command as the run of a scheduled job.

use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use fencelock::Schedule;
use fencelock::options::{OptionScope, OptionValue};
use tokio::select;

use super::session::{Wishes, Words, give_back, session, supervise};
use super::system::exit_code;
use crate::exit::{Failure, HELP, finish, say};
use crate::store::Store;

const WORDS: Words = Words {
    lost: "the run counted as dead before it ended",
    unconfirmed: "the store did not confirm the run's end; it will count as dead",
};

const NOTES: &str = "\
Put this command into the cron of every machine: all machines ask, and one of them runs the command. The scheduled instant
of a run is the last time of --cron, or the last multiple of --every, by the store's clock. A timer may fire early by a tenth
of the time between two instants, 30 s at most. A run starts only if no run was started for this instant and the last run is
over; with --every, half of it must also have passed since the last start. If no run is due, the exit code is 0; -v prints the reason: `running`, `done` or `not_due`, and
which machine runs or ran it.

The environment of the command has the job's name in FENCELOCK_LOCK and the run's fencing token in FENCELOCK_TOKEN. Exit
code 0 marks the run as succeeded, any other exit code as failed. For the rest see `fencelock run --help`.";

/// Run a command if its scheduled run is due and was not started elsewhere.
#[derive(Args)]
#[command(after_long_help = format!("{NOTES}\n\n{HELP}"))]
pub(crate) struct Job {
    /// Name of the job.
    #[arg(value_name = "NAME")]
    name: String,
    /// The period, such as `1h` or `10min`, counted from 1970 (UTC).
    #[arg(long, value_name = "TIME", required_unless_present = "cron", conflicts_with = "cron")]
    every: Option<humantime::Duration>,
    /// The times as a cron expression, such as `0 3 * * *`.
    #[arg(long, value_name = "CRON")]
    cron: Option<String>,
    /// The time zone of --cron, such as `Europe/Berlin`. Default: UTC.
    #[arg(long, value_name = "ZONE")]
    timezone: Option<String>,
    /// Names the run by this instant of the scheduler's own, such as `2026-11-30T03:00:00Z`, instead of the last one by the
    /// store's clock.
    #[arg(long, value_name = "INSTANT")]
    at: Option<humantime::Timestamp>,
    /// A run counts as dead this long after its last renewal. Default: 30s.
    #[arg(long, value_name = "TIME")]
    ttl: Option<String>,
    /// The shortest time from the start of a run to the start of the next one.
    #[arg(long, value_name = "TIME")]
    at_least_for: Option<String>,
    /// End the command after this time at the latest.
    #[arg(long, value_name = "TIME")]
    at_most_for: Option<String>,
    /// Run again for the same scheduled instant if the last run died before its end.
    #[arg(long)]
    retry_dead: bool,
    /// Print on standard error why the command is not run.
    #[arg(short, long)]
    verbose: bool,
    /// A short text for people who inspect the run.
    #[arg(long, value_name = "TEXT")]
    info: Option<String>,
    /// Any other option by its name; can be repeated.
    #[arg(short = 'o', long = "option", value_name = "NAME=VALUE")]
    options: Vec<String>,
    #[command(flatten)]
    store: Store,
    /// The command and its arguments, after `--`.
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<OsString>,
}

impl Job {
    pub(crate) fn execute(self) -> ExitCode {
        finish(async move { self.run().await })
    }

    fn schedule(&self) -> Schedule {
        let schedule = match (&self.cron, self.every) {
            (Some(cron), _) => Schedule::cron(cron),
            (None, every) => Schedule::from(every.map_or(Duration::ZERO, Into::into)),
        };
        match &self.timezone {
            Some(zone) => schedule.timezone(zone),
            None => schedule,
        }
    }

    async fn run(&self) -> Result<u8, Failure> {
        let text = |flag: &Option<String>| flag.as_deref().map(OptionValue::from);
        let flags = [
            ("ttl", text(&self.ttl)),
            ("at_least_for", text(&self.at_least_for)),
            ("at_most_for", text(&self.at_most_for)),
            ("info", text(&self.info)),
            ("retry_dead", self.retry_dead.then(|| true.into())),
        ];
        let wishes = Wishes::of(&self.options, flags)?;
        self.store.has_to_be_named()?;
        session(&self.name, &self.store, &self.command, &wishes, async |client, signals| {
            let mut job = client.job(&self.name, self.schedule());
            if let Some(at) = self.at {
                job = job.at(at.into());
            }
            let (job, terms) =
                wishes.apply(client, OptionScope::Job, job, fencelock::Job::option)?;
            let lease = terms.at_most_for.map_or(terms.ttl, |most| most.min(terms.ttl));
            let run = select! { biased;
                signal = signals.next() => return Ok(exit_code(signal.as_raw())),
                run = job.start() => run?,
            };
            let run = match run {
                Ok(run) => run,
                Err(skipped) => {
                    if self.verbose {
                        say(format_args!("not run, {skipped} (name: {})", self.name));
                    }
                    return Ok(0);
                }
            };
            let claim = fencelock::Claim::clone(&run.claim());
            let code = supervise(claim, lease, &self.command, signals).await?;
            let end = async { if code == 0 { run.succeed().await } else { run.fail().await } };
            Ok(give_back(&self.name, code, WORDS, end).await)
        })
        .await
    }
}
