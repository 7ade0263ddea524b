//! The worker processes, as their parent sees them: it orders, listens, kills, freezes and thaws.

use std::io::{self, BufRead as _, BufReader, ErrorKind, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::{PATIENCE, Result, worker};

enum Event {
    /// The process of this id wrote a line, or ended.
    Line(u32, Option<String>),
    Signal,
}

pub(crate) struct Workers {
    url: String,
    arguments: [String; 3],
    children: Vec<Child>,
    sender: Sender<Event>,
    events: Receiver<Event>,
}

impl Workers {
    /// Starts so many workers, and waits until they are ready.
    pub(crate) fn start(url: &str, arguments: [String; 3], size: usize) -> Result<Self> {
        let (sender, events) = channel();
        let (url, children) = (url.to_owned(), Vec::new());
        let mut workers = Self { url, arguments, children, sender, events };
        let mut signals = Signals::new([SIGHUP, SIGINT, SIGQUIT, SIGTERM])?;
        let sender = workers.sender.clone();
        thread::spawn(move || signals.forever().try_for_each(|_| sender.send(Event::Signal)));
        workers.children = (0..size).map(|_| workers.spawn()).collect::<io::Result<_>>()?;
        (0..size).try_for_each(|_| workers.next().map(drop))?;
        Ok(workers)
    }

    fn spawn(&self) -> io::Result<Child> {
        let mut child = Command::new(std::env::current_exe()?)
            .arg("worker")
            .args(&self.arguments)
            .env(worker::URL, &self.url)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // A group of its own: Ctrl-C is for the parent, which ends its workers.
            .process_group(0)
            .spawn()?;
        let (id, sender) = (child.id(), self.sender.clone());
        let output = BufReader::new(child.stdout.take().expect("it is piped"));
        thread::spawn(move || {
            let mut lines = output.lines().map_while(io::Result::ok).map(Some).chain([None]);
            lines.try_for_each(|line| sender.send(Event::Line(id, line)))
        });
        Ok(child)
    }

    /// Gives a worker an order. Its output tells if it has ended.
    pub(crate) fn order(&mut self, worker: usize, order: &str) {
        let _ = writeln!(self.children[worker].stdin.as_mut().expect("it is piped"), "{order}");
    }

    /// Takes the next report. Answers the worker, its word and the token.
    pub(crate) fn next(&mut self) -> Result<(usize, String, i64)> {
        loop {
            let silence = |_| format!("nothing happened for {} s", PATIENCE.as_secs());
            let (id, line) = match self.events.recv_timeout(PATIENCE).map_err(silence)? {
                Event::Line(id, line) => (id, line.unwrap_or_else(|| "its process ended".into())),
                Event::Signal => return Err(io::Error::from(ErrorKind::Interrupted).into()),
            };
            // The last words of one that was replaced are passed over.
            if let Some(worker) = self.children.iter().position(|child| child.id() == id) {
                let (word, token) = line.split_once(' ').unwrap_or_default();
                let failed = |_| format!("worker {}: {line}", worker + 1);
                return Ok((worker, word.to_owned(), token.parse().map_err(failed)?));
            }
        }
    }

    /// Kills a worker (`kill -9`), and starts a new process in its place.
    pub(crate) fn kill_and_replace(&mut self, worker: usize) -> io::Result<()> {
        self.children[worker].kill()?;
        self.children[worker].wait()?;
        self.children[worker] = self.spawn()?;
        Ok(())
    }

    pub(crate) fn signal(&self, worker: usize, signal: Signal) -> io::Result<()> {
        Ok(kill_process(Pid::from_child(&self.children[worker]), signal)?)
    }
}

impl Drop for Workers {
    /// Kills the workers. A lock that one of them holds ends with its lease.
    fn drop(&mut self) {
        self.children.iter_mut().for_each(|child| drop(child.kill().and_then(|()| child.wait())));
    }
}
