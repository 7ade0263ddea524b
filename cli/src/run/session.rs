//! A command that runs while something is held: what `run` and `job` have in common.

use std::ffi::OsString;
use std::time::Duration;

use fencelock::options::{OptionScope, OptionValue, Options, TABLE, check_name};
use fencelock::{Claim, Client, EventKind, Released};
use tokio::select;
use tokio::time::timeout;

use super::system::{Signals, Supervisor, exit_code};
use super::verdict::Margins;
use crate::exit::{Failure, LOST, say};
use crate::store::{Store, program};

/// How long the end waits for the store.
const PATIENCE: Duration = Duration::from_secs(3);

/// A wait without end.
const FOREVER: Duration = Duration::from_secs(100 * 365 * 86_400);

/// Options by name, checked.
pub(super) struct Wishes<'a>(Vec<(&'a str, OptionValue)>);

impl<'a> Wishes<'a> {
    /// The options of `--option`, and the flags that are options, as far as they were given.
    pub(super) fn of(
        named: &'a [String],
        flags: impl IntoIterator<Item = (&'a str, Option<OptionValue>)>,
    ) -> Result<Self, Failure> {
        let mut wishes = Vec::new();
        for option in named {
            let (name, value) = option.split_once('=').ok_or_else(|| {
                // What is no option may be a URL, and have a password.
                let known = TABLE.iter().find(|row| row.name == option);
                let shown = known.map_or(String::new(), |row| format!(" {}", row.name));
                Failure::configuration(format!(
                    "`--option{shown}` has no value; write `--option name=value`"
                ))
            })?;
            wishes.push((name, value.into()));
        }
        wishes.extend(flags.into_iter().filter_map(|(name, value)| Some((name, value?))));
        let mut options = Options::default();
        options.set_all(wishes.iter().cloned(), OptionScope::Client)?;
        Ok(Self(wishes))
    }

    /// How long to wait, if that was said.
    fn wait(&self) -> Duration {
        let mut options = Options::default();
        options.wait = Some(Duration::ZERO);
        for (name, value) in self.0.iter().filter(|(name, _)| *name == "wait") {
            // It was checked.
            let _ = options.set(name, value);
        }
        options.wait.unwrap_or(FOREVER)
    }

    fn of_scope(
        &self,
        wanted: impl Fn(OptionScope) -> bool,
    ) -> impl Iterator<Item = &(&'a str, OptionValue)> {
        let scope = |name| TABLE.iter().find(|row| row.name == name).map(|row| row.scope);
        self.0.iter().filter(move |(name, _)| scope(*name).is_some_and(&wanted))
    }

    /// Sets what belongs to it, a lock or a job; answers all its options.
    pub(super) fn apply<T>(
        &self,
        client: &Client,
        scope: OptionScope,
        mut of: T,
        set: impl Fn(T, &str, OptionValue) -> T,
    ) -> Result<(T, Options), Failure> {
        let mut terms = client.options().clone();
        for (name, value) in self.of_scope(|row| row != OptionScope::Client) {
            terms.set_all([(*name, value.clone())], scope)?;
            of = set(of, name, value.clone());
        }
        Ok((of, terms))
    }
}

/// Connects, does the work, and frees on the store what is left, unless a signal comes first.
pub(super) async fn session(
    name: &str,
    store: &Store,
    command: &[OsString],
    wishes: &Wishes<'_>,
    work: impl AsyncFnOnce(&Client, &mut Signals) -> Result<u8, Failure>,
) -> Result<u8, Failure> {
    check_name(name)?;
    let mut signals =
        Signals::ending().map_err(|error| Failure::system("signals cannot be heard", &error))?;
    let app = command.first().map(|command| program(command)).unwrap_or_default();
    // While it waits for a store that refuses, people should know why.
    let mut builder = Client::builder().app(&*app).language("shell").on_event(|event| {
        match (event.kind, &event.reason) {
            (EventKind::Trouble, Some(trouble)) => {
                // Of a name somebody waits for; without one it is about the store.
                let waits = if event.name.is_empty() { "" } else { "; still waiting" };
                say(format_args!("{trouble}{waits}"));
            }
            (EventKind::LongWait, _) => {
                let holder = event.holder.as_deref().unwrap_or("somebody");
                say(format_args!("{}: held by {holder}; still waiting", event.name));
            }
            _ => {}
        }
    });
    for (name, value) in wishes.of_scope(|row| row == OptionScope::Client) {
        builder = builder.option(name, value.clone());
    }
    // Where locks live with the session of their client, the session of this one lock is as long as its lease.
    if let Some((name, value)) = wishes.0.iter().rfind(|(name, _)| *name == "ttl") {
        builder = builder.option(name, value.clone());
    }
    let url = store.url()?;
    let client = select! { biased;
        signal = signals.next() => return Ok(exit_code(signal.as_raw())),
        client = builder.connect_within(&url, wishes.wait()) => client?,
    };
    let result = work(&client, &mut signals).await;
    let _ = timeout(PATIENCE, client.close()).await;
    result
}

/// Runs the command for as long as the claim stands; its exit code.
pub(super) async fn supervise(
    claim: Claim,
    lease: Duration,
    command: &[OsString],
    signals: &mut Signals,
) -> Result<u8, Failure> {
    let system = |error| Failure::system("the command cannot be supervised", &error);
    signals.add_others().map_err(system)?;
    let supervisor = Supervisor::start(claim, Margins::of(lease), command).await.map_err(system)?;
    supervisor.watch(signals).await.map_err(system)
}

/// The messages for an end that was no success.
pub(super) struct Words {
    pub lost: &'static str,
    pub unconfirmed: &'static str,
}

/// Gives back what was held; that it had been lost by then changes the exit code of a success.
pub(super) async fn give_back(
    name: &str,
    code: u8,
    words: Words,
    end: impl Future<Output = Released>,
) -> u8 {
    match timeout(PATIENCE, end).await.unwrap_or(Released::Unconfirmed) {
        Released::Released => code,
        _ if code == LOST => code,
        Released::AlreadyLost => {
            let lost = words.lost;
            say(format_args!("lost: {lost}; the command had ended with {code} (name: {name})"));
            if code == 0 { LOST } else { code }
        }
        Released::Unconfirmed => {
            say(format_args!("{} (name: {name})", words.unconfirmed));
            code
        }
    }
}
