//! One `fencelock run`.

use std::path::Path;
use std::process::Stdio;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Shared};
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::{ChildStdin, Command};

use super::words::{Outcome, written};
use crate::protocol::Options;

/// How a run ends; `None` if nobody is left to tell.
type Ending = Shared<BoxFuture<'static, Option<Outcome>>>;

/// The run to start: its words and its store.
pub(super) struct Plan {
    words: Vec<String>,
    url: String,
    once: bool,
}

/// A run. Its clones are the same one.
#[derive(Clone)]
pub(super) struct Run {
    pid: Pid,
    /// Whether it asks once only.
    pub once: bool,
    ending: Ending,
}

/// A run that has its lock. Dropped, it is told to end.
pub(super) struct Hold {
    /// The token its command was given.
    pub token: u64,
    input: Option<ChildStdin>,
    /// When its command was told to end, or has ended: the run itself may yet have to reach the store.
    told: Shared<BoxFuture<'static, ()>>,
    ending: Ending,
}

impl Plan {
    /// A command under a lock, with these options.
    pub(super) fn of(url: &str, lock: &str, options: &Options, once: bool, section: &str) -> Self {
        let mut words: Vec<String> = ["run", lock].map(str::to_owned).into();
        if once {
            words.push("--no-wait".to_owned());
        }
        for (name, value) in options {
            words.extend(["-o".to_owned(), format!("{name}={}", written(name, value))]);
        }
        words.extend(["--", "sh", "-c", section].map(str::to_owned));
        Self { words, url: url.to_owned(), once }
    }

    /// Starts it; it ends with this process, however that ends. The second is its lock, or why it has none.
    pub(super) fn start(self, program: &Path) -> (Run, BoxFuture<'static, Result<Hold, Outcome>>) {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL"]).arg(program).args(self.words);
        command.env("FENCELOCK_URL", self.url);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the command line starts");
        let pid = child.id().and_then(|pid| Pid::from_raw(pid.cast_signed()));
        let pid = pid.expect("it has just been started");
        let (input, output) = (child.stdin.take(), child.stdout.take().expect("it is piped"));
        let mut errors = child.stderr.take().expect("it is piped");
        let ending = tokio::spawn(async move {
            let mut said = String::new();
            // Guarded by the exit code: what cannot be read is no message.
            let _ = errors.read_to_string(&mut said).await;
            let status = child.wait().await.expect("its end is told");
            Outcome::new(status, &said)
        });
        let ending: Ending = ending.map(Result::ok).boxed().shared();
        let run = Run { pid, once: self.once, ending: ending.clone() };
        let granted = async move {
            let mut lines = BufReader::new(output).lines();
            match lines.next_line().await.expect("its output can be read") {
                Some(token) => {
                    let token = token.parse().expect("it tells its token");
                    let told = tokio::spawn(async move { drop(lines.next_line().await) });
                    let told = told.map(drop).boxed().shared();
                    Ok(Hold { token, input, told, ending })
                }
                None => Err(ending.await.expect("its end is told")),
            }
        };
        (run, granted.boxed())
    }
}

impl Run {
    /// Has it give up.
    pub(super) fn terminate(&self) {
        if self.ending.clone().now_or_never().is_none() {
            // It may just have ended by itself.
            let _ = kill_process(self.pid, Signal::TERM);
        }
    }

    /// Waits for its end.
    pub(super) async fn end(self) {
        self.ending.await;
    }
}

impl Hold {
    /// When its command is told to end, or ends.
    pub(super) fn told(&self) -> Shared<BoxFuture<'static, ()>> {
        self.told.clone()
    }

    /// Whether its command runs and was not told to end.
    pub(super) fn is_held(&self) -> bool {
        self.told.clone().now_or_never().is_none()
    }

    /// Tells its command to end, and waits for that.
    pub(super) async fn give_back(mut self) -> Outcome {
        self.input = None;
        self.end().await
    }

    /// Waits for its end.
    pub(super) async fn end(self) -> Outcome {
        self.ending.await.expect("its end is told")
    }
}
