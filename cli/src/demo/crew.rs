//! The worker processes: started, given orders, listened to, stopped, killed, and gone when the crew goes.

use std::io::Result;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde::Serialize;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, Command};
use tokio::sync::mpsc;

use super::order::{Order, Report, Setup};
use crate::run::itself;
use crate::secret;

/// How long workers may take to give back what they hold when the show ends early.
const FAREWELL: Duration = Duration::from_millis(1500);

pub(super) struct Crew {
    setup: Setup,
    sabotaged: bool,
    workers: Vec<Worker>,
    sender: mpsc::UnboundedSender<Message>,
    inbox: mpsc::UnboundedReceiver<Message>,
}

struct Worker {
    child: Child,
    input: ChildStdin,
    pid: Pid,
}

struct Message {
    worker: usize,
    pid: Pid,
    said: Said,
}

/// What comes from a worker.
pub(super) enum Said {
    Report(Report),
    /// Its process ended.
    Gone,
}

impl Crew {
    /// Starts `size` processes of this program; the lock of a sabotaged crew does not keep out the first of them.
    pub(super) async fn start(setup: Setup, size: usize, sabotaged: bool) -> Result<Self> {
        let (sender, inbox) = mpsc::unbounded_channel();
        let mut crew = Self { setup, sabotaged, workers: Vec::with_capacity(size), sender, inbox };
        for number in 0..size {
            let worker = crew.engage(number).await?;
            crew.workers.push(worker);
        }
        Ok(crew)
    }

    async fn engage(&self, number: usize) -> Result<Worker> {
        let mut child = Command::new(itself())
            .arg0("fencelock")
            .args(["demo", "--worker"])
            .env_remove(secret::VARIABLE)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            // A group of its own: Ctrl-C is the conductor's to answer.
            .process_group(0)
            .kill_on_drop(true)
            .spawn()?;
        let pid = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        let pid = pid.expect("a process that was just started has an id");
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let (mut input, output) = (input.expect("piped above"), output.expect("piped above"));
        let sender = self.sender.clone();
        tokio::spawn(async move {
            let mut lines = BufReader::new(output).lines();
            while let Ok(Some(line)) = lines.next_line().await {
                let Ok(report) = serde_json::from_str(&line) else { break };
                let _ = sender.send(Message { worker: number, pid, said: Said::Report(report) });
            }
            let _ = sender.send(Message { worker: number, pid, said: Said::Gone });
        });
        let mut setup = self.setup.clone();
        if self.sabotaged && number == 0 {
            setup.lock.push_str(":another");
        }
        send(&mut input, &setup).await?;
        Ok(Worker { child, input, pid })
    }

    pub(super) fn size(&self) -> usize {
        self.workers.len()
    }

    pub(super) fn pid(&self, worker: usize) -> i32 {
        self.workers[worker].pid.as_raw_nonzero().get()
    }

    /// Tells a worker what to do. One that has ended is noticed by what comes from it, not here.
    pub(super) async fn order(&mut self, worker: usize, order: Order) {
        let _ = send(&mut self.workers[worker].input, &order).await;
    }

    /// The next report and who gave it. Words of a process that was replaced are passed over.
    pub(super) async fn hear(&mut self) -> (usize, Said) {
        loop {
            let message = self.inbox.recv().await.expect("the crew keeps a sender itself");
            if self.workers[message.worker].pid == message.pid {
                return (message.worker, message.said);
            }
        }
    }

    /// `kill -9`.
    pub(super) fn kill(&self, worker: usize) -> Result<()> {
        self.signal(worker, Signal::KILL)
    }

    /// Freezes the process where it stands.
    pub(super) fn stop(&self, worker: usize) -> Result<()> {
        self.signal(worker, Signal::STOP)
    }

    /// Lets it go on.
    pub(super) fn resume(&self, worker: usize) -> Result<()> {
        self.signal(worker, Signal::CONT)
    }

    fn signal(&self, worker: usize, signal: Signal) -> Result<()> {
        // Not reaped before it is replaced, so the id is still its own.
        Ok(kill_process(self.workers[worker].pid, signal)?)
    }

    /// A new process in the place of one that was killed.
    pub(super) async fn replace(&mut self, worker: usize) -> Result<()> {
        self.workers[worker] = self.engage(worker).await?;
        Ok(())
    }

    /// Ends all workers: those that can, give back what they hold; the others are killed.
    pub(super) async fn dismiss(self) {
        let mut leaving = Vec::with_capacity(self.workers.len());
        for Worker { child, input, pid } in self.workers {
            // Its input ends here, which tells it to go; a frozen one has to run for that.
            drop(input);
            let _ = kill_process(pid, Signal::CONT);
            leaving.push(child);
        }
        let everybody = async {
            for child in &mut leaving {
                let _ = child.wait().await;
            }
        };
        if tokio::time::timeout(FAREWELL, everybody).await.is_err() {
            for child in &mut leaving {
                let _ = child.kill().await;
            }
        }
    }
}

async fn send(input: &mut ChildStdin, line: &impl Serialize) -> Result<()> {
    let mut line = serde_json::to_vec(line)?;
    line.push(b'\n');
    input.write_all(&line).await
}
