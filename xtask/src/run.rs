//! Runs one part: its commands one after another, their output in a log, and a limit that only ends a hang.

use std::fs::File;
use std::io::{IsTerminal, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use crate::machine::Machine;
use crate::parts::Part;
use crate::{INSIDE, log};

/// How often a command that runs is looked at.
const LOOK: Duration = Duration::from_millis(50);
/// A part that takes so many times as long as usual hangs.
const HANG: u32 = 10;
/// The exit code by which a script says that the machine lacks something.
const LACKING: i32 = 2;

pub(crate) struct Runner {
    pub root: PathBuf,
    pub target: PathBuf,
    pub no_install: bool,
    pub strict: bool,
    /// Set when the user wants an end.
    pub interrupted: Arc<AtomicBool>,
}

/// How a part ended, and why.
pub(crate) enum Verdict {
    Passed,
    Failed(String),
    Skipped(String),
}

pub(crate) struct Report {
    pub part: &'static Part,
    pub verdict: Verdict,
    pub took: Duration,
    pub tests: usize,
    pub log: PathBuf,
}

impl Verdict {
    pub(crate) fn word(&self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed(_) => "failed",
            Self::Skipped(_) => "skipped",
        }
    }

    pub(crate) fn why(&self) -> &str {
        match self {
            Self::Passed => "",
            Self::Failed(why) | Self::Skipped(why) => why,
        }
    }
}

impl Runner {
    pub(crate) fn run(&self, place: &str, part: &'static Part, machine: &Machine) -> Report {
        let begin = Instant::now();
        let log = self.target.join("test-all").join(part.name).with_extension("log");
        let line = format!("{place} {:<16} {}", part.name, part.shows);
        let terminal = std::io::stdout().is_terminal();
        if !terminal {
            println!("{line}");
        }
        let tick = || {
            // Once or twice a second.
            if terminal && begin.elapsed().subsec_nanos() < 2 * LOOK.subsec_nanos() {
                print!("\r\x1b[K{line}  {} s", begin.elapsed().as_secs());
                let _ = std::io::stdout().flush();
            }
        };
        let verdict = match machine.lacks(part.needs) {
            Some(lack) => Verdict::Skipped(lack),
            None => self.commands(part, &log, begin, &tick),
        };
        let tests = if matches!(verdict, Verdict::Skipped(_)) { 0 } else { log::passed(&log) };
        let took = begin.elapsed();
        let clear = if terminal { "\r\x1b[K" } else { "" };
        println!("{clear}{place} {:<16} {} after {} s", part.name, verdict.word(), took.as_secs());
        Report { part, verdict, took, tests, log }
    }

    fn commands(&self, part: &Part, log: &Path, begin: Instant, tick: &dyn Fn()) -> Verdict {
        let limit = Duration::from_secs(u64::from((part.usual * HANG).max(300)));
        let folder = log.parent().unwrap_or(&self.root);
        let file = match std::fs::create_dir_all(folder).and_then(|()| File::create(log)) {
            Ok(file) => file,
            Err(error) => return Verdict::Failed(format!("{}: {error}", log.display())),
        };
        for words in part.run {
            let before = log::passed(log);
            let status = match self.command(part, words, &file, begin + limit, tick) {
                Ok(status) => status,
                Err(why) => return Verdict::Failed(why),
            };
            if status.code() == Some(LACKING) && is_script(words) {
                return Verdict::Skipped(log::last_line(log));
            }
            if !status.success() {
                return Verdict::Failed(format!("`{words}` ended with {status}"));
            }
            // A filter that selects nothing must not pass.
            if runs_tests(words) && log::passed(log) == before {
                return Verdict::Failed(format!("`{words}` ran no test"));
            }
        }
        Verdict::Passed
    }

    fn command(
        &self,
        part: &Part,
        words: &str,
        mut log: &File,
        limit: Instant,
        tick: &dyn Fn(),
    ) -> Result<ExitStatus, String> {
        let failed = |error: std::io::Error| format!("`{words}`: {error}");
        writeln!(log, "\n$ {words}").map_err(failed)?;
        let mut split = words.split(' ');
        let program = split.next().unwrap_or_default();
        let mut command = match program {
            "cargo" => Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())),
            script if is_script(script) => Command::new(self.root.join(script)),
            program => Command::new(self.target.join("quick").join(program)),
        };
        // A space inside an argument is written as `+`.
        command.args(split.map(|word| word.replace('+', " ")));
        self.environment(&mut command, part);
        command
            .current_dir(&self.root)
            .stdin(Stdio::null())
            .stdout(log.try_clone().map_err(failed)?)
            .stderr(log.try_clone().map_err(failed)?)
            .process_group(0);
        let mut child = command.spawn().map_err(failed)?;
        loop {
            if let Some(status) = child.try_wait().map_err(failed)? {
                // A server that outlived its test must not burden the next part.
                let _ = kill_process_group(Pid::from_child(&child), Signal::KILL);
                return Ok(status);
            }
            let interrupted = self.interrupted.load(Ordering::Relaxed);
            if interrupted || Instant::now() > limit {
                end(&mut child);
                let why = if interrupted { "interrupted" } else { "it hung and was ended" };
                return Err(why.into());
            }
            tick();
            std::thread::sleep(LOOK);
        }
    }

    fn environment(&self, command: &mut Command, part: &Part) {
        // Cargo's words about this program would have build scripts of others run anew.
        for (name, _) in std::env::vars_os() {
            let own = ["CARGO_PKG_", "CARGO_MANIFEST_"];
            if own.iter().any(|own| name.to_string_lossy().starts_with(own)) {
                command.env_remove(name);
            }
        }
        command.env(INSIDE, "1").env("CARGO_TERM_COLOR", "never");
        if part.full {
            command.env("FENCELOCK_FULL", "1");
        } else {
            // Packages are built with the profile, the features and so the dependencies of the tests.
            command.env("FENCELOCK_PROFILE", "quick");
            command.env("FENCELOCK_BUILDER", self.root.join("scripts/cargo.sh"));
        }
        if self.no_install {
            command.env("FENCELOCK_NO_INSTALL", "1");
        }
        if self.strict {
            command.env("FENCELOCK_STRICT", "1");
        }
    }
}

fn is_script(words: &str) -> bool {
    Path::new(words).extension().is_some_and(|end| end == "sh")
}

/// Whether a command ends with the closing line of a test runner.
fn runs_tests(words: &str) -> bool {
    words.ends_with("/test.sh") || words.starts_with("cargo test ") && !words.contains(" --no-run ")
}

/// Ends a command with all that it started and that stayed in its group.
fn end(child: &mut Child) {
    let _ = kill_process_group(Pid::from_child(child), Signal::KILL);
    let _ = child.wait();
}
