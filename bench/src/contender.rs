//! A contender, which is measured: a program that runs one course and prints one line of figures.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use fencelock_peers::Program;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use crate::Result;
use crate::machine::{CLIENT, Core, pinned};
use crate::subject;

/// How long a program may take to start and to end, beside its course.
const PATIENCE: Duration = Duration::from_mins(1);

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Contender {
    /// Its name in the tables.
    pub name: String,
    program: PathBuf,
    /// The words before the course.
    words: Vec<String>,
    /// The words after it.
    options: Vec<String>,
}

impl Contender {
    /// Somebody this program can play itself.
    pub(crate) fn built_in(name: &str) -> Result<Self> {
        let words = vec![subject::WORD.to_owned(), name.to_owned()];
        let program = std::env::current_exe()?;
        Ok(Self { name: name.to_owned(), program, words, options: Vec::new() })
    }

    /// A library of the family that this program is of.
    pub(crate) fn peer(name: &str, program: &Program) -> Self {
        let Program { path, words } = program.clone().with(name);
        Self { name: name.to_owned(), program: path, words, options: Vec::new() }
    }

    /// Our own package for a language.
    pub(crate) fn door(language: &str, program: &Program) -> Self {
        let Program { path, words } = program.clone();
        Self { name: format!("fencelock {language}"), program: path, words, options: Vec::new() }
    }

    /// The same with an option, under a name that says so.
    pub(crate) fn with(mut self, option: &str) -> Self {
        self.name = format!("{} {option}", self.name);
        self.options.push(option.to_owned());
        self
    }

    /// One process of it on `course`.
    pub(crate) fn entry(&self, course: &str, words: Vec<String>) -> Entry {
        let before = self.words.iter().cloned().chain([course.to_owned()]);
        let words = before.chain(words).chain(self.options.iter().cloned()).collect();
        Entry { program: self.program.clone(), words, core: CLIENT }
    }
}

/// One process of a race.
pub(crate) struct Entry {
    program: PathBuf,
    words: Vec<String>,
    core: Core,
}

impl Entry {
    pub(crate) fn on(mut self, core: Core) -> Self {
        self.core = core;
        self
    }

    fn start(self) -> Result<Runner> {
        let mut command = Command::from(pinned(self.core, &self.program));
        command.args(&self.words).stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut process = command.spawn()?;
        let input = process.stdin.take().ok_or("no standard input")?;
        let output = process.stdout.take().ok_or("no standard output")?;
        Ok(Runner { process, input, output: BufReader::new(output).lines() })
    }
}

struct Runner {
    process: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
}

/// Lets the entries run together: `go` is called when all are connected and warm, `done` when all have figures.
pub(crate) async fn race<T>(
    entries: Vec<Entry>,
    lasts: Duration,
    go: impl FnOnce() -> Result<()>,
    done: impl FnOnce() -> Result<T>,
) -> Result<(Vec<Value>, T)> {
    let race = async {
        let mut runners = entries.into_iter().map(Entry::start).collect::<Result<Vec<_>>>()?;
        for runner in &mut runners {
            if runner.output.next_line().await?.as_deref() != Some("ready") {
                return Err("it ended before it was ready".into());
            }
        }
        go()?;
        for runner in &mut runners {
            runner.input.write_all(b"go\n").await?;
        }
        let mut figures = Vec::new();
        for runner in &mut runners {
            let line = runner.output.next_line().await?.ok_or("it ended without figures")?;
            figures.push(serde_json::from_str(&line)?);
        }
        let counted = done()?;
        for runner in &mut runners {
            runner.process.wait().await?;
        }
        Ok((figures, counted))
    };
    tokio::time::timeout(lasts + PATIENCE, race).await.map_err(|_| "it did not end in time")?
}
