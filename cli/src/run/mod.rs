//! `fencelock run`: a command under a lock.

mod job;
mod refusal;
mod session;
#[cfg(unix)]
#[path = "unix/mod.rs"]
mod system;
#[cfg(windows)]
#[path = "windows/mod.rs"]
mod system;
// On Windows the command is not told before it is killed, and has no guardian.
#[cfg_attr(windows, allow(dead_code))]
mod verdict;

use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use fencelock::options::{OptionScope, OptionValue};
use fencelock::{Code, Guard, Lock};
use tokio::select;

pub(crate) use self::job::Job;
use self::session::{Wishes, Words, give_back, session, supervise};
use self::system::exit_code;
#[cfg(unix)]
pub(crate) use self::system::itself;
pub(crate) use self::system::play_part;
use crate::exit::{Failure, HELP, finish};
use crate::store::Store;

const WORDS: Words = Words {
    lost: "the lock was lost before it was released",
    unconfirmed: "the store did not confirm the release; the lock is free at the latest when its lease ends",
};

const USAGE: &str = "fencelock run [OPTIONS] <NAME> -- <CMD>...";

const NOTES: &str = "\
The environment of the command has the lock's name in FENCELOCK_LOCK and the fencing token in FENCELOCK_TOKEN. Pass the
token to the resource with every write. The command runs in a process group of its own. fencelock forwards TERM, INT, HUP,
QUIT, USR1, USR2, WINCH, CONT and TSTP to it. On a terminal the command has the foreground and gets Ctrl-C and Ctrl-Z itself.
When the command ends by itself, its background processes continue without the lock. When TERM, INT, QUIT or HUP ends it,
all its descendants get that signal too, and fencelock holds the lock until they have ended. After 10 s it kills the rest,
except after HUP. FENCELOCK_URL is passed on unchanged; --url is not, and its password is never shown.

If the lease cannot be renewed, the command and all its descendants get TERM 5 s before it ends (a quarter of a lease under
20 s) and KILL 200 ms before it ends (a fifth of a lease under 1 s). If the lock is suddenly gone from the store, they get
TERM at once and KILL a second later. If fencelock itself is killed with -9, they are killed at once. If it is frozen, they
are killed at the latest 100 ms before the lease ends (a tenth of a lease under 1 s).

On Linux, fencelock finds descendants through /proc in every process group and session (`timeout`, `setsid`, `set -m`);
elsewhere it finds those in the command's group. It cannot reach a process that a service starts for the command
(systemd-run, at, docker, ssh), nor one of another user, such as under sudo, unless fencelock runs as root. It reports such
a process when it sees one; that process must check the fencing token. A new orphan may be missed if the supervisor and the
guardian process beside it are both killed within a tenth of a second.

On Windows the command and all its descendants are in one job object. They are killed when the command ends, when the lock is
lost or its lease ends, and when fencelock ends in whatever way; they are not told before. A frozen fencelock does not kill
them. Ctrl-C and Ctrl-Break reach the command through the console. An exit code above 255 becomes 255.";

/// Run a command while holding a lock.
#[derive(Args)]
#[command(after_long_help = format!("{NOTES}\n\n{HELP}"), override_usage = USAGE)]
pub(crate) struct Run {
    /// Name of the lock.
    #[arg(value_name = "NAME", required_unless_present = "lock", conflicts_with = "lock")]
    name: Option<String>,
    /// The same as NAME, for a name that begins with a dash (`--lock=-name`).
    #[arg(long, value_name = "NAME")]
    lock: Option<String>,
    /// How long to wait for the lock, such as `5s`. Default: without limit.
    #[arg(long, value_name = "TIME", conflicts_with = "no_wait")]
    wait: Option<String>,
    /// Do not wait. If the lock is held or waited for, end with exit code 75.
    #[arg(long)]
    no_wait: bool,
    /// Length of the lease. If this machine dies, the lock is free after at most this time. Default: 30s.
    #[arg(long, value_name = "TIME")]
    ttl: Option<String>,
    /// End the command after this time at the latest.
    #[arg(long, value_name = "TIME")]
    max_hold: Option<String>,
    /// Give a free lock to the first client that asks, not to the one that waits longest.
    #[arg(long)]
    unfair: bool,
    /// A short text for people who inspect the lock.
    #[arg(long, value_name = "TEXT")]
    info: Option<String>,
    /// Any other option by its name, such as `renew=false`; can be repeated.
    #[arg(short = 'o', long = "option", value_name = "NAME=VALUE")]
    options: Vec<String>,
    #[command(flatten)]
    store: Store,
    /// The command and its arguments, after `--`.
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<OsString>,
}

impl Run {
    pub(crate) fn execute(self) -> ExitCode {
        finish(async move { self.run().await })
    }

    /// The name of the lock: the parser lets exactly one through.
    fn name(&self) -> &str {
        self.name.as_deref().or(self.lock.as_deref()).unwrap_or_default()
    }

    async fn run(&self) -> Result<u8, Failure> {
        let text = |flag: &Option<String>| flag.as_deref().map(OptionValue::from);
        let flags = [
            ("wait", text(&self.wait)),
            ("ttl", text(&self.ttl)),
            ("max_hold", text(&self.max_hold)),
            ("info", text(&self.info)),
            ("wait", self.no_wait.then(|| "0s".into())),
            ("fair", self.unfair.then(|| false.into())),
        ];
        let wishes = Wishes::of(&self.options, flags)?;
        session(self.name(), &self.store, &self.command, &wishes, async |client, signals| {
            let (lock, terms) =
                wishes.apply(client, OptionScope::Lock, client.lock(self.name()), Lock::option)?;
            let lease = terms.max_hold.map_or(terms.ttl, |most| most.min(terms.ttl));
            let guard = select! { biased;
                signal = signals.next() => return Ok(exit_code(signal.as_raw())),
                guard = acquire(&lock, terms.ttl, lease) => guard?,
            };
            let code = supervise(guard.claim(), lease, &self.command, signals).await?;
            Ok(give_back(self.name(), code, WORDS, guard.release()).await)
        })
        .await
    }
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
