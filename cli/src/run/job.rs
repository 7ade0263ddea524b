//! `fencelock job`: a command as the run of a scheduled job.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Args;
use serde_json::Value;
use tokio::select;

use super::session::{Wishes, Words, give_back, session, supervise};
use super::signals::exit_code;
use crate::exit::{Failure, HELP, finish, say};
use crate::store::Store;

const WORDS: Words = Words {
    lost: "the run counted as dead before it ended",
    unconfirmed: "the store did not confirm the run's end; it will count as dead",
};

const NOTES: &str = "\
For the cron of every machine of a fleet: all of them ask, one of them runs the command. A run is named by the last multiple of
--every, counted from 1970 (UTC), by the store's clock; a timer may fire early by a tenth of --every, 30 s at most. It starts
only if none of that name was started before, the last one is over, and half of --every has passed since its start. If there
is nothing to do, the exit code is 0; -v says why: `running`, `done` or `not_due`, and who runs or ran it.

The command finds the job's name in FENCELOCK_LOCK and the run's fencing token in FENCELOCK_TOKEN. Exit code 0 marks the run
as succeeded, any other as failed. The rest is as with `fencelock run`.";

/// Run a command if its scheduled run is due and nobody has started it.
#[derive(Args)]
#[command(after_long_help = format!("{NOTES}\n\n{HELP}"))]
pub(crate) struct Job {
    /// The job's name.
    #[arg(value_name = "NAME")]
    name: String,
    /// The period, such as `1h` or `1day`.
    #[arg(long, value_name = "TIME")]
    every: humantime::Duration,
    /// How long after its last sign of life a run counts as dead; 30s by default.
    #[arg(long, value_name = "TIME")]
    ttl: Option<String>,
    /// The shortest time from the start of a run to the next one's.
    #[arg(long, value_name = "TIME")]
    at_least_for: Option<String>,
    /// End the command after this time at the latest.
    #[arg(long, value_name = "TIME")]
    at_most_for: Option<String>,
    /// Run again what died without an end.
    #[arg(long)]
    retry_dead: bool,
    /// Say on standard error why the command is not run.
    #[arg(short, long)]
    verbose: bool,
    /// A word for people who look at the run.
    #[arg(long, value_name = "TEXT")]
    label: Option<String>,
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

    async fn run(&self) -> Result<u8, Failure> {
        let text = |flag: &Option<String>| flag.as_deref().map(Value::from);
        let flags = [
            ("ttl", text(&self.ttl)),
            ("at_least_for", text(&self.at_least_for)),
            ("at_most_for", text(&self.at_most_for)),
            ("label", text(&self.label)),
            ("retry_dead", self.retry_dead.then(|| true.into())),
        ];
        let wishes = Wishes::of(&self.options, flags)?;
        self.store.has_to_be_named()?;
        session(&self.name, &self.store, &self.command, &wishes, async |client, signals| {
            let job = client.job(&self.name, *self.every);
            let (job, terms) = wishes.apply(client, job, fencelock::Job::option)?;
            let lease = terms.at_most_for.map_or(terms.ttl, |most| most.min(terms.ttl));
            let run = select! { biased;
                signal = signals.next() => return Ok(exit_code(signal.as_raw())),
                run = job.start_or_why() => run?,
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
