//! `fencelock run`: a command under a lock.

mod clock;
mod group;
mod guardian;
mod job;
mod signals;
mod supervisor;
mod terminal;
mod verdict;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use fencelock::options::{Options, Scope, TABLE, check_name};
use fencelock::{Client, Code, Guard, Lock, Released};
use serde_json::Value;
use tokio::select;
use tokio::time::timeout;

pub(crate) use self::job::Job;
use self::signals::{Signals, exit_code};
use self::supervisor::Supervisor;
use self::verdict::Margins;
use crate::exit::{Failure, HELP, LOST, finish, say};
use crate::store::{Store, program};

/// How long the end waits for the store.
const PATIENCE: Duration = Duration::from_secs(3);

const NOTES: &str = "\
The command finds the lock's name in FENCELOCK_LOCK and the fencing token in FENCELOCK_TOKEN: hand it to whatever it
writes to. It runs in a process group of its own and hears TERM, INT, HUP, QUIT, USR1, USR2, WINCH, CONT and TSTP sent to
fencelock; on a terminal it has the foreground, so that Ctrl-C and Ctrl-Z are its own. Processes it leaves in the background
go on without the lock. FENCELOCK_URL reaches it as it was; a --url does not, and its password is shown to nobody.

If the lease cannot be renewed, the group gets TERM 5 s (or a quarter of the lease) and KILL 200 ms before it ends; if the
lock is gone all at once, TERM now and KILL a second later. If fencelock is killed with -9, the group is killed at once.";

/// Run a command while holding a lock.
#[derive(Args)]
#[command(after_long_help = format!("{NOTES}\n\n{HELP}"))]
pub(crate) struct Run {
    /// The lock's name.
    #[arg(long, value_name = "NAME")]
    lock: String,
    /// How long to wait for the lock, such as `5s`; for ever by default.
    #[arg(long, value_name = "TIME", conflicts_with = "no_wait")]
    wait: Option<String>,
    /// Ask once; if somebody else holds the lock, end with 75.
    #[arg(long)]
    no_wait: bool,
    /// Length of the lease: if this machine dies, the lock is free again after that; 30s by default.
    #[arg(long, value_name = "TIME")]
    ttl: Option<String>,
    /// End the command after this time at the latest.
    #[arg(long, value_name = "TIME")]
    max_hold: Option<String>,
    /// Let whoever comes first win, instead of whoever waits longest.
    #[arg(long)]
    unfair: bool,
    /// A word for people who inspect the lock.
    #[arg(long, value_name = "TEXT")]
    label: Option<String>,
    /// Any other option by its name, such as `renew=false`; can be repeated.
    #[arg(short = 'o', long = "option", value_name = "NAME=VALUE")]
    options: Vec<String>,
    #[command(flatten)]
    store: Store,
    /// The command and its arguments, after `--`.
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<OsString>,
}

/// This very program, also if its file was replaced meanwhile.
pub(crate) fn itself() -> PathBuf {
    if cfg!(target_os = "linux") {
        return PathBuf::from("/proc/self/exe");
    }
    std::env::current_exe().unwrap_or_else(|_| PathBuf::from("fencelock"))
}

/// Plays the part `fencelock run` started this process for, if it did.
pub(crate) fn play_part() -> Option<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    match arguments.next()?.to_str()? {
        guardian::GUARD => Some(guardian::guard(arguments.next())),
        group::LAUNCH => Some(group::launch(arguments)),
        _ => None,
    }
}

impl Run {
    pub(crate) fn execute(self) -> ExitCode {
        finish(async move { self.run().await })
    }

    async fn run(&self) -> Result<u8, Failure> {
        let options = self.options()?;
        check_name(&self.lock)?;
        Options::default().set_all(options.iter().cloned(), true)?;
        let mut signals = Signals::ending()
            .map_err(|error| Failure::system("signals cannot be heard", &error))?;

        let client = select! { biased;
            signal = signals.next() => return Ok(exit_code(signal.as_raw())),
            client = self.connect(&options) => client?,
        };
        let result = self.run_with(&client, &options, &mut signals).await;
        // Whatever is left to free is freed here.
        let _ = timeout(PATIENCE, client.close()).await;
        result
    }

    async fn run_with(
        &self,
        client: &Client,
        options: &[(&str, Value)],
        signals: &mut Signals,
    ) -> Result<u8, Failure> {
        let mut lock = client.lock(&self.lock);
        let mut terms = client.options().clone();
        for (name, value) in options.iter().filter(|(name, _)| scope(name) == Some(Scope::Lock)) {
            terms.set(name, value)?;
            lock = lock.option(name, value.clone());
        }
        let lease = terms.max_hold.map_or(terms.ttl, |most| most.min(terms.ttl));
        let guard = select! { biased;
            signal = signals.next() => return Ok(exit_code(signal.as_raw())),
            guard = acquire(&lock, terms.ttl, lease) => guard?,
        };
        let system = |error| Failure::system("the command cannot be supervised", &error);
        signals.add_others().map_err(system)?;
        let supervisor =
            Supervisor::start(guard.claim(), Margins::of(lease), &self.command).map_err(system)?;
        let code = supervisor.watch(signals).await.map_err(system)?;
        Ok(release(guard, code).await)
    }

    /// The options, as names and values of the table.
    fn options(&self) -> Result<Vec<(&str, Value)>, Failure> {
        let mut options = named(&self.options)?;
        let flags = [
            ("wait", &self.wait),
            ("ttl", &self.ttl),
            ("max_hold", &self.max_hold),
            ("label", &self.label),
        ];
        for (name, value) in flags {
            options.extend(value.as_ref().map(|value| (name, value.as_str().into())));
        }
        if self.no_wait {
            options.push(("wait", "0s".into()));
        }
        if self.unfair {
            options.push(("fair", false.into()));
        }
        Ok(options)
    }

    async fn connect(&self, options: &[(&str, Value)]) -> Result<Client, Failure> {
        let app = self.command.first().map(|command| program(command)).unwrap_or_default();
        // While it waits for a store that refuses, people should know why.
        let mut builder = Client::builder().app(app).language("shell").on_event(|event| {
            if let Some(trouble) = &event.trouble {
                say(format_args!("{trouble}; still waiting"));
            }
        });
        for (name, value) in options.iter().filter(|(name, _)| scope(name) == Some(Scope::Client)) {
            builder = builder.option(name, value.clone());
        }
        self.store.connect(builder).await
    }
}

/// What `--option` says, as names and values.
fn named(options: &[String]) -> Result<Vec<(&str, Value)>, Failure> {
    let mut pairs = Vec::new();
    for option in options {
        let (name, value) = option.split_once('=').ok_or_else(|| {
            Failure::configuration(format!(
                "`--option {option}` has no value; write `--option name=value`"
            ))
        })?;
        pairs.push((name, value.into()));
    }
    Ok(pairs)
}

fn scope(name: &str) -> Option<Scope> {
    TABLE.iter().find(|row| row.name == name).map(|row| row.scope)
}

/// Waits for the lock, with a whole lease: the one it is handed over with is shorter.
async fn acquire(lock: &Lock, ttl: Duration, lease: Duration) -> fencelock::Result<Guard> {
    loop {
        let guard = lock.acquire().await?;
        if guard.remaining() > lease / 2 {
            return Ok(guard);
        }
        match guard.extend(ttl).await {
            Ok(()) => return Ok(guard),
            // It slipped away before it was of any use.
            Err(error) if error.code() == Code::Lost => {}
            Err(error) => return Err(error),
        }
    }
}

/// Frees the lock after the command; that it had been lost by then changes the exit code of a success.
async fn release(guard: Guard, code: u8) -> u8 {
    let name = guard.name().to_owned();
    match timeout(PATIENCE, guard.release()).await.unwrap_or(Released::Unconfirmed) {
        Released::Released => code,
        _ if code == LOST => code,
        Released::AlreadyLost => {
            say(format_args!(
                "lost: the lock was lost before it was released; the command had ended with {code} (name: {name})"
            ));
            if code == 0 { LOST } else { code }
        }
        Released::Unconfirmed => {
            say(format_args!(
                "the store did not confirm the release; the lock is free at the latest when its lease ends (name: {name})"
            ));
            code
        }
    }
}
