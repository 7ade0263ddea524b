//! `fencelock job`: a command as the run of a scheduled job.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Args;
use fencelock::options::{Options, Scope, check_name};
use fencelock::{Client, Released, Run};
use serde_json::Value;
use tokio::select;
use tokio::time::timeout;

use super::signals::{Signals, exit_code};
use super::supervisor::Supervisor;
use super::verdict::Margins;
use super::{PATIENCE, named, scope};
use crate::exit::{Failure, HELP, LOST, finish, say};
use crate::store::{Store, program};

const NOTES: &str = "\
For the cron of every machine of a fleet: all of them ask, one of them runs the command. A run is named by the multiple of
--every, counted from 1970 (UTC), that is nearest to the store's clock; it starts only if none of that name was started
before and the last one is over. If there is nothing to do, that is said to nobody, and the exit code is 0.

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
        let options = self.options()?;
        check_name(&self.name)?;
        Options::default().set_all(options.iter().cloned(), true)?;
        let mut signals = Signals::ending()
            .map_err(|error| Failure::system("signals cannot be heard", &error))?;
        let app = self.command.first().map(|command| program(command)).unwrap_or_default();
        let mut builder = Client::builder().app(app).language("shell");
        for (name, value) in options.iter().filter(|(name, _)| scope(name) == Some(Scope::Client)) {
            builder = builder.option(name, value.clone());
        }
        let client = select! { biased;
            signal = signals.next() => return Ok(exit_code(signal.as_raw())),
            client = self.store.connect(builder) => client?,
        };
        let result = self.run_with(&client, &options, &mut signals).await;
        // Whatever is left to mark is marked here.
        let _ = timeout(PATIENCE, client.close()).await;
        result
    }

    async fn run_with(
        &self,
        client: &Client,
        options: &[(&str, Value)],
        signals: &mut Signals,
    ) -> Result<u8, Failure> {
        let mut job = client.job(&self.name, *self.every);
        let mut terms = client.options().clone();
        for (name, value) in options.iter().filter(|(name, _)| scope(name) == Some(Scope::Lock)) {
            terms.set(name, value)?;
            job = job.option(name, value.clone());
        }
        let lease = terms.at_most_for.map_or(terms.ttl, |most| most.min(terms.ttl));
        let run = select! { biased;
            signal = signals.next() => return Ok(exit_code(signal.as_raw())),
            run = job.start() => run?,
        };
        let Some(run) = run else { return Ok(0) };
        let system = |error| Failure::system("the command cannot be supervised", &error);
        signals.add_others().map_err(system)?;
        let claim = fencelock::Claim::clone(&run.claim());
        let supervisor =
            Supervisor::start(claim, Margins::of(lease), &self.command).map_err(system)?;
        let code = supervisor.watch(signals).await.map_err(system)?;
        Ok(mark(run, code).await)
    }

    fn options(&self) -> Result<Vec<(&str, Value)>, Failure> {
        let mut options = named(&self.options)?;
        let flags = [
            ("ttl", &self.ttl),
            ("at_least_for", &self.at_least_for),
            ("at_most_for", &self.at_most_for),
            ("label", &self.label),
        ];
        for (name, value) in flags {
            options.extend(value.as_ref().map(|value| (name, value.as_str().into())));
        }
        if self.retry_dead {
            options.push(("retry_dead", true.into()));
        }
        Ok(options)
    }
}

/// Marks how the run ended; that it had been lost by then changes the exit code of a success.
async fn mark(run: Run, code: u8) -> u8 {
    let name = run.name().to_owned();
    let ended = async { if code == 0 { run.succeed().await } else { run.fail().await } };
    match timeout(PATIENCE, ended).await.unwrap_or(Released::Unconfirmed) {
        Released::Released => code,
        _ if code == LOST => code,
        Released::AlreadyLost => {
            say(format_args!(
                "lost: the run counted as dead before it ended; the command had ended with {code} (name: {name})"
            ));
            if code == 0 { LOST } else { code }
        }
        Released::Unconfirmed => {
            say(format_args!(
                "the store did not confirm the run's end; it will count as dead (name: {name})"
            ));
            code
        }
    }
}
