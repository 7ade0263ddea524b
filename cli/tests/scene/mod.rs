//! A store of its own for each test, and the real program run on it.

#![allow(dead_code)] // Each test program uses a part of it.

#[cfg(target_os = "linux")]
pub(crate) mod shell;

use std::io::{BufRead as _, BufReader};
use std::ops::Range;
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use fencelock_tests::{ended, in_full};
use rusqlite::Connection;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

/// The longest wait: an event that has not happened by then will not happen.
const PATIENCE: Duration = Duration::from_secs(30);

/// So long in full; beside other work 20 seconds.
pub(crate) fn soon(time: Duration) -> Duration {
    if in_full() { time } else { Duration::from_secs(20) }
}

/// A directory with a store in a file.
pub(crate) struct Scene {
    directory: TempDir,
}

impl Scene {
    pub(crate) fn new() -> Self {
        Self { directory: TempDir::new().unwrap() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn url(&self) -> String {
        format!("sqlite:{}", self.path("locks.db").display())
    }

    /// The program with this scene's store in its environment.
    pub(crate) fn fencelock(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fencelock"));
        command
            .args(arguments)
            .current_dir(self.directory.path())
            .env("FENCELOCK_URL", self.url())
            .env("FENCELOCK", env!("CARGO_BIN_EXE_fencelock"));
        command
    }

    /// Runs the program to its end.
    pub(crate) fn run(&self, arguments: &[&str]) -> Finished {
        Running::start(&mut self.fencelock(arguments)).finish()
    }

    pub(crate) fn start(&self, arguments: &[&str]) -> Running {
        Running::start(&mut self.fencelock(arguments))
    }

    /// Starts a command under the lock `name` and waits for its first line.
    pub(crate) fn hold(&self, options: &[&str], script: &str) -> (Running, String) {
        let arguments = [&["run", "it"], options, &["--", "sh", "-c", script]].concat();
        let running = self.start(&arguments);
        let line = running.line();
        (running, line)
    }

    pub(crate) fn inspect(&self, name: &str) -> Value {
        let shown = self.run(&["inspect", name, "-o", "json"]);
        assert_eq!(shown.code, Some(0), "{}", shown.err);
        serde_json::from_str(&shown.out).unwrap()
    }

    /// Waits until so many wait for the lock `it`.
    pub(crate) fn until_waiters(&self, count: usize) {
        until(|| self.inspect("it")["waiters"].as_array().unwrap().len() == count);
    }

    pub(crate) fn database(&self) -> Connection {
        let connection = Connection::open(self.path("locks.db")).unwrap();
        connection.busy_timeout(PATIENCE).unwrap();
        connection
    }
}

/// When the store may give the lock `it` to another, by the machine's clock.
pub(crate) fn lease_end(database: &Connection) -> SystemTime {
    lease_end_of(database, "it")
}

/// The same of any lock.
pub(crate) fn lease_end_of(database: &Connection, name: &str) -> SystemTime {
    let sql = "SELECT expires_at FROM fencelock_lock WHERE name = ?1";
    let micros: i64 = database.query_row(sql, [name], |row| row.get(0)).unwrap();
    UNIX_EPOCH + Duration::from_micros(micros.unsigned_abs())
}

/// A started program whose output is read all along.
pub(crate) struct Running {
    child: Child,
    lines: Receiver<String>,
    errors: Receiver<String>,
}

/// How a program ended.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) code: Option<i32>,
    pub(crate) signal: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Running {
    pub(crate) fn start(command: &mut Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (sender, lines) = channel();
        let out = BufReader::new(child.stdout.take().unwrap());
        thread::spawn(move || {
            for line in out.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        let (sender, errors) = channel();
        let err = BufReader::new(child.stderr.take().unwrap());
        thread::spawn(move || {
            for line in err.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Self { child, lines, errors }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The standard input; what reads it ends when this is dropped.
    pub(crate) fn input(&mut self) -> ChildStdin {
        self.child.stdin.take().unwrap()
    }

    /// Kills its guardian, and answers the one that takes its place.
    pub(crate) fn kill_guardian(&self) -> u32 {
        let guardians = || children_with(self.pid(), "__guard");
        let first = guardians()[0];
        kill_process(Pid::from_raw(first.cast_signed()).unwrap(), Signal::KILL).unwrap();
        until(|| guardians().first().is_some_and(|next| *next != first));
        guardians()[0]
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// The next line of output.
    pub(crate) fn line(&self) -> String {
        self.next_line().expect("there is another line of output")
    }

    /// The next line of output; `None` where it ended.
    pub(crate) fn next_line(&self) -> Option<String> {
        match self.lines.recv_timeout(PATIENCE) {
            Ok(line) => Some(line),
            Err(RecvTimeoutError::Disconnected) => None,
            Err(error) => panic!("neither a line of output nor its end: {error}"),
        }
    }

    /// The next line of standard error.
    pub(crate) fn error(&self) -> String {
        self.errors.recv_timeout(PATIENCE).expect("there is another line of errors")
    }

    /// Waits until nobody holds the output any more: supervisor, command and all it started have ended.
    pub(crate) fn silence(&self) {
        let end = Instant::now() + PATIENCE;
        loop {
            match self.lines.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok(_) => {}
                Err(RecvTimeoutError::Disconnected) => return,
                Err(error) => panic!("somebody still holds the output: {error}"),
            }
        }
    }

    pub(crate) fn finish(mut self) -> Finished {
        drop(self.child.stdin.take());
        let mut out = String::new();
        let end = Instant::now() + PATIENCE;
        while let Ok(line) = self.lines.recv_timeout(end.saturating_duration_since(Instant::now()))
        {
            out += &line;
            out += "\n";
        }
        let status = ended::status(&mut self.child);
        let mut err = String::new();
        loop {
            match self.errors.recv_timeout(PATIENCE) {
                Ok(line) => err = err + &line + "\n",
                Err(RecvTimeoutError::Disconnected) => break,
                Err(error) => panic!("somebody still holds standard error: {error}"),
            }
        }
        Finished { code: status.code(), signal: status.signal(), out, err }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits until something that announces itself to nobody is so.
pub(crate) fn until(mut so: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !so() {
        assert!(Instant::now() < end, "it never came true");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Whether whoever started these tests has them ignore a signal, which their children inherit.
pub(crate) fn is_ignored(signal: Signal) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask >> (signal.as_raw() - 1) & 1 == 1
}

/// The state letter of a process (`R`, `S`, `T`, `Z`), `None` if there is none.
pub(crate) fn process_state(pid: u32) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.chars().next()
}

/// Whether a process still runs; one that only waits to be reaped does not.
pub(crate) fn is_alive(pid: u32) -> bool {
    process_state(pid).is_some_and(|state| state != 'Z')
}

/// Waits until a process has ended; answers when it was last seen alive, in 1970 if never, and when it was seen dead. Whoever looks
/// may be late, so its end was between them.
pub(crate) fn end_of(pid: u32) -> Range<SystemTime> {
    let mut alive = UNIX_EPOCH;
    until(|| {
        let now = SystemTime::now();
        let lives = is_alive(pid);
        if lives {
            alive = now;
        }
        !lives
    });
    alive..SystemTime::now()
}

/// The children of a process that were started with this argument.
pub(crate) fn children_with(parent: u32, argument: &str) -> Vec<u32> {
    let listed = std::fs::read_to_string(format!("/proc/{parent}/task/{parent}/children"));
    let children = listed.unwrap_or_default();
    let children = children.split_whitespace().map(|pid| pid.parse().unwrap());
    let with = |pid: &u32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0).any(|one| one == argument.as_bytes())
    };
    children.filter(with).collect()
}
