//! Runs parts: one log file each, a limit of time, and what to say of it.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use crate::need::{self, Machine};
use crate::part::{Part, Report, Site, Step, Targets, Verdict};
use crate::tail;

/// A part that takes longer hangs.
const LIMIT: Duration = Duration::from_secs(15 * 60);
const LIMIT_IN_FULL: Duration = Duration::from_secs(3 * 3600);
/// How often a running step is looked at.
const LOOK: Duration = Duration::from_millis(20);
/// A script's way to say that the machine lacks something.
const LACKING: i32 = 2;

pub(crate) struct Runner {
    site: Site,
    machine: Machine,
}

enum End {
    Failed(String),
    Lacking(String),
}

impl Runner {
    pub(crate) fn new(site: Site) -> Self {
        Self { site, machine: Machine::default() }
    }

    /// Runs a part to its end.
    pub(crate) fn run(&mut self, part: &Part) -> Report {
        let begin = Instant::now();
        let verdict = match self.steps(part, begin) {
            Ok(words) => Verdict::Passed(words),
            Err(End::Failed(words)) => Verdict::Failed(words),
            Err(End::Lacking(words)) => Verdict::Skipped(words),
        };
        Report { name: part.name, verdict, took: begin.elapsed() }
    }

    /// The end of a part's log, and where the whole of it is.
    pub(crate) fn failure(&self, part: &Part) -> String {
        let log = self.log(part);
        let panics = tail::panics(&log);
        format!("{panics}{}\n        the whole log: {}", tail::lines(&log, 60), log.display())
    }

    fn log(&self, part: &Part) -> PathBuf {
        self.site.target.join("test-all").join(part.name).with_extension("log")
    }

    fn steps(&mut self, part: &Part, begin: Instant) -> Result<String, End> {
        let log = self.log(part);
        let create = || {
            std::fs::create_dir_all(log.parent()?).ok()?;
            File::create(&log).ok()
        };
        let file =
            create().ok_or_else(|| End::Failed(format!("cannot write {}", log.display())))?;
        for need in part.needs {
            self.machine.has(*need).map_err(End::Lacking)?;
        }
        for want in part.wants {
            // Whose tests look for it themselves, and say so.
            let _ = self.machine.has(*want);
        }
        let limit = begin + if self.site.full { LIMIT_IN_FULL } else { LIMIT };
        let words = self.list(part.steps(self.site.full), &file, &log, limit)?;
        let mut all = vec![tail::tests(&log).unwrap_or(words)];
        all.extend(tail::sizes(&log));
        let words = all.join("; ");
        match tail::skipped(&log) {
            // In part, which is not all it is to show.
            Some(skipped) => Err(End::Lacking(format!("{words}, without {skipped}"))),
            None => Ok(words),
        }
    }

    /// One step after the other; the words of the last.
    fn list(&self, list: &[Step], file: &File, log: &Path, limit: Instant) -> Result<String, End> {
        list.iter().try_fold(String::new(), |_, step| self.step(step, file, log, limit))
    }

    /// All lists at once, each with a log of its own, which is put behind the part's in the end.
    fn beside(
        &self,
        lists: &[&[Step]],
        mut file: &File,
        log: &Path,
        limit: Instant,
    ) -> Result<String, End> {
        let failed = |error: std::io::Error| End::Failed(error.to_string());
        let run = |(number, list): (usize, &&[Step])| {
            let log = log.with_extension(format!("{number}.log"));
            let ended = File::create(&log)
                .map_err(failed)
                .and_then(|file| self.list(list, &file, &log, limit));
            (log, ended)
        };
        let ended: Vec<_> = std::thread::scope(|scope| {
            let lanes: Vec<_> =
                lists.iter().enumerate().map(|lane| scope.spawn(move || run(lane))).collect();
            lanes.into_iter().map(|lane| lane.join().expect("a lane does not panic")).collect()
        });
        let mut words = Ok(String::new());
        for (log, ended) in ended {
            file.write_all(&std::fs::read(&log).map_err(failed)?).map_err(failed)?;
            std::fs::remove_file(&log).map_err(failed)?;
            words = words.and(ended);
        }
        words
    }

    fn step(&self, step: &Step, file: &File, log: &Path, limit: Instant) -> Result<String, End> {
        let (mut command, expect): (_, &[&str]) = match step {
            Step::Beside(lists) => return self.beside(lists, file, log, limit),
            Step::Check(check) => {
                return check(&self.site).map_err(|words| {
                    let first =
                        match (words.lines().next().unwrap_or_default(), words.lines().count()) {
                            (first, 0 | 1) => first.to_owned(),
                            (first, lines) => format!("{first} (and {} more lines)", lines - 1),
                        };
                    let _ = std::fs::write(log, words);
                    End::Failed(first)
                });
            }
            Step::Cargo { args, env, expect } => {
                let mut command = cargo(args);
                command.envs(env.iter().copied());
                (command, expect)
            }
            Step::Tests(targets) => {
                (cargo(&self.test_arguments(targets).map_err(End::Failed)?), &[])
            }
            Step::On(server, words) => {
                let mut command = cargo(&["test", "--profile=quick", "--workspace"]);
                command.args(*words).args(server.left_out());
                let program = self.site.target.join("servers").join(server.name).join("server");
                command.env(need::REDIS_SERVER, program).env("FENCELOCK_TENTH", "1");
                (command, &[])
            }
            Step::Build(test) => {
                let test = format!("--test={test}");
                (cargo(&["test", "--profile=quick", "--workspace", "--no-run", &test]), &[])
            }
            Step::Program(name, args) => {
                let mut command = Command::new(self.site.target.join("quick").join(name));
                command.args(*args);
                (command, &[])
            }
            Step::Script(path) | Step::Suite(path) => {
                (Command::new(self.site.root.join(path)), &[])
            }
        };
        let before = tail::length(log);
        let status = self.wait(&mut command, file, limit)?;
        let last = tail::last_line(log);
        if !status.success() {
            let lacking =
                matches!(step, Step::Script(_) | Step::Suite(_)) && status.code() == Some(LACKING);
            return Err(if lacking {
                End::Lacking(tail::brief(&last))
            } else {
                End::Failed(tail::complaint(log))
            });
        }
        if let Some(text) = expect.iter().find(|text| !last.contains(**text)) {
            return Err(End::Failed(format!("the last line lacks {text}: {}", tail::brief(&last))));
        }
        let tests = match step {
            Step::Cargo { args, .. } => args.first() == Some(&"test"),
            other => matches!(other, Step::Tests(_) | Step::On(..) | Step::Suite(_)),
        };
        if tests && tail::tests_run(log, before) == 0 {
            return Err(End::Failed("no test ran".into()));
        }
        Ok(tail::brief(&last))
    }

    fn test_arguments(&self, targets: &Targets) -> Result<Vec<String>, String> {
        let mut args: Vec<String> =
            ["test", "--profile=quick", "--workspace"].map(String::from).into();
        let mut name = |name: &str| args.push(format!("--test={name}"));
        match targets {
            Targets::Unit => args.extend(["--lib", "--bins"].map(String::from)),
            Targets::Docs => args.push("--doc".into()),
            Targets::Named(names) => names.iter().copied().for_each(name),
            Targets::Folder(folder) => {
                let files = crate::check::test_targets(&self.site.root.join(folder));
                if files.is_empty() {
                    return Err(format!("there are no tests in {folder}"));
                }
                for file in &files {
                    name(file);
                }
            }
        }
        Ok(args)
    }

    /// Runs a command to its end, its words going to the log.
    fn wait(&self, command: &mut Command, file: &File, limit: Instant) -> Result<ExitStatus, End> {
        let failed = |error: std::io::Error| End::Failed(error.to_string());
        // What cargo said to this program about itself is nothing to others: ring would be built anew for it.
        for (name, _) in std::env::vars_os() {
            let own = ["CARGO_PKG_", "CARGO_MANIFEST_"];
            if own.iter().any(|own| name.to_string_lossy().starts_with(own)) {
                command.env_remove(name);
            }
        }
        command
            .current_dir(&self.site.root)
            .env(crate::INSIDE, "1")
            .env("CARGO_TERM_COLOR", "never")
            .stdin(Stdio::null())
            .stdout(file.try_clone().map_err(failed)?)
            .stderr(file.try_clone().map_err(failed)?);
        if self.site.full {
            command.env("FENCELOCK_FULL", "1");
        }
        if self.site.strict {
            command.env("FENCELOCK_STRICT", "1");
        }
        let mut child = command.spawn().map_err(failed)?;
        loop {
            if let Some(status) = child.try_wait().map_err(failed)? {
                return Ok(status);
            }
            if Instant::now() > limit {
                end_with_descendants(&mut child);
                return Err(End::Failed("it took too long and was ended".into()));
            }
            std::thread::sleep(LOOK);
        }
    }
}

fn cargo(args: &[impl AsRef<OsStr>]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(args);
    command
}

/// Ends a process and all it has started, which cargo's own end would leave running.
fn end_with_descendants(child: &mut Child) {
    let mut family = vec![child.id().to_string()];
    let mut next = 0;
    while let Some(parent) = family.get(next) {
        family.extend(children(parent));
        next += 1;
    }
    let _ = Command::new("sh").args(["-c", "kill -9 \"$@\"", "kill"]).args(&family).status();
    let _ = child.kill();
    let _ = child.wait();
}

/// The processes started by any thread of a process; none where there is no `/proc`.
fn children(parent: &str) -> Vec<String> {
    let Ok(threads) = std::fs::read_dir(format!("/proc/{parent}/task")) else { return Vec::new() };
    let lists = threads.flatten().map(|thread| thread.path().join("children"));
    let lists = lists.filter_map(|list| std::fs::read_to_string(list).ok());
    lists.flat_map(|list| list.split_whitespace().map(String::from).collect::<Vec<_>>()).collect()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};
    use std::time::{Duration, Instant};

    #[test]
    fn grandchildren_end_too() {
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 60 & echo started; wait"]).stdout(Stdio::piped());
        let begin = Instant::now();
        let mut child = command.spawn().expect("there is a shell");
        let mut words = BufReader::new(child.stdout.take().expect("it is piped")).lines();
        words.next();
        super::end_with_descendants(&mut child);
        // The pipe ends when nobody is left who could write to it.
        assert!(words.next().is_none());
        assert!(begin.elapsed() < Duration::from_secs(30));
    }
}
