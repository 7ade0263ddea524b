//! A seller in the [`shop`](crate::shop): an actor of any language, or `fencelock run` around a command.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fencelock_peers::Program;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use crate::command_line::{LOST, program};
use crate::conformance::player::Player;
use crate::ended;
use crate::protocol::{Call, Grant};
use crate::shop::{LOCK, TTL, acquire, ask, start};

/// The command that runs under the lock: prints the token, and ends when it reads a line.
const SECTION: &str = r#"echo "$FENCELOCK_TOKEN"; read -r _"#;

/// A kind of clerk, before it has come.
#[derive(Clone, Debug)]
pub enum Post {
    /// A program that speaks the actor protocol.
    Actor(Program),
    /// The command line, which is started anew for every sale.
    CommandLine(PathBuf),
}

/// One at work. Its clones are the same one.
#[derive(Clone)]
pub enum Clerk {
    /// See [`Post::Actor`].
    Actor(Arc<Player>),
    /// See [`Post::CommandLine`].
    CommandLine(Arc<CommandLine>),
}

/// The command line of one clerk.
pub struct CommandLine {
    program: PathBuf,
    url: String,
    place: Mutex<Place>,
}

/// Where the command line is.
enum Place {
    /// Nowhere: between two sales.
    Away,
    /// It waits for the lock, or sells.
    Running(Pid),
    /// Killed, for good.
    Dead,
}

/// The lock, held by a clerk.
pub struct Held {
    /// The token of the grant.
    pub token: u64,
    by: By,
}

enum By {
    Guard(u64),
    Run(Child),
}

impl Clerk {
    /// One that is ready to sell.
    pub async fn start(post: &Post, url: &str) -> Self {
        match post {
            Post::Actor(program) => Self::Actor(start(program, url).await),
            Post::CommandLine(program) => Self::CommandLine(Arc::new(CommandLine {
                program: program.clone(),
                url: url.to_owned(),
                place: Mutex::new(Place::Away),
            })),
        }
    }

    /// Waits for the lock; `None` if it was killed.
    pub async fn acquire(&self) -> Option<Held> {
        match self {
            Self::Actor(actor) => {
                let Grant { guard, token } = acquire(actor, TTL).await?;
                Some(Held { token, by: By::Guard(guard) })
            }
            Self::CommandLine(command) => command.acquire().await,
        }
    }

    /// Gives the lock back, and tells whether it was held until then; `None` if it was killed.
    pub async fn release(&self, held: Held) -> Option<bool> {
        match (self, held.by) {
            (Self::Actor(actor), By::Guard(guard)) => {
                let held = ask(actor, Call::IsHeld { guard }).await? == Value::Bool(true);
                ask(actor, Call::Release { guard }).await?;
                Some(held)
            }
            (Self::CommandLine(command), By::Run(run)) => command.end(run).await,
            _ => unreachable!("a clerk gives back what it was granted itself"),
        }
    }

    /// Kills it with a signal nobody can catch.
    pub fn kill(&self) {
        match self {
            Self::Actor(actor) => actor.kill(),
            Self::CommandLine(command) => {
                let mut place = command.place.lock().unwrap();
                if let Place::Running(pid) = *place {
                    // It may have ended by itself just now.
                    let _ = kill_process(pid, Signal::KILL);
                }
                *place = Place::Dead;
            }
        }
    }

    /// Lets it go home, and waits until it has gone in good order.
    pub async fn leave(self) {
        let Self::Actor(actor) = self else { return };
        while !tokio::task::block_in_place(|| actor.has_left())
            .expect("an actor leaves in good order")
        {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

impl CommandLine {
    async fn acquire(&self) -> Option<Held> {
        let mut run = self.run()?;
        let mut lines = BufReader::new(run.stdout.take().expect("it is piped")).lines();
        match lines.next_line().await.expect("its output can be read") {
            Some(token) => {
                let token = token.parse().expect("it tells its token");
                Some(Held { token, by: By::Run(run) })
            }
            // Granted and lost before the command said a word, or killed.
            None => {
                Box::pin(async move {
                    self.end(run).await?;
                    self.acquire().await
                })
                .await
            }
        }
    }

    /// Starts a run, unless it was killed before.
    fn run(&self) -> Option<Child> {
        let mut place = self.place.lock().unwrap();
        if matches!(*place, Place::Dead) {
            return None;
        }
        let ttl = format!("{}ms", TTL.as_millis());
        let mut command = Command::new(&self.program);
        command.args(["run", LOCK, "--ttl", &ttl, "--url", &self.url]);
        command.args(["--", "sh", "-c", SECTION]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let run = command.kill_on_drop(true).spawn().expect("the command line starts");
        let pid = run.id().and_then(|pid| Pid::from_raw(pid.cast_signed()));
        *place = Place::Running(pid.expect("it has just been started"));
        Some(run)
    }

    /// Has the command end. Whether the lock was held to the end; `None` if it was killed.
    async fn end(&self, mut run: Child) -> Option<bool> {
        drop(run.stdin.take());
        let ended = tokio::time::timeout(ended::WITHIN, run.wait_with_output()).await;
        let ended = ended.expect("it ends in time").expect("its end is told");
        let mut place = self.place.lock().unwrap();
        if matches!(*place, Place::Dead) {
            return None;
        }
        *place = Place::Away;
        match ended.status.code() {
            // `read` has met the end of its input.
            Some(1) => Some(true),
            Some(LOST) => Some(false),
            _ => panic!("{}: {}", ended.status, String::from_utf8_lossy(&ended.stderr)),
        }
    }
}

/// The command line, which lies beside the workspace's other programs.
pub fn command_line(beside: &Path) -> Post {
    Post::CommandLine(program(beside).unwrap_or_else(|lack| panic!("{lack}")))
}
