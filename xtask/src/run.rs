//! Runs one part: a log file, a limit of time, and what to say of it.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::build::{self, Built, Program};
use crate::descendants::end_with_descendants;
use crate::need::{self, Machine};
use crate::others::Others;
use crate::part::{Part, Report, Site, Step, Targets, Verdict};
use crate::quiet::processor_time;
use crate::tail;

/// A part that takes longer hangs.
const LIMIT: Duration = Duration::from_secs(15 * 60);
const LIMIT_IN_FULL: Duration = Duration::from_secs(3 * 3600);
/// How often a running step is looked at.
const LOOK: Duration = Duration::from_millis(20);
/// What is said of a part that was not run to its end because the user wanted one.
const INTERRUPTED: &str = "interrupted";
/// A script's way to say that the machine lacks something.
const LACKING: i32 = 2;
/// The profile of the packages, which their scripts read. In full they are built as users get them.
const PROFILE: (&str, &str) = ("FENCELOCK_PROFILE", "quick");

/// What builds packages in a short run in place of cargo. Their scripts read it: others build with cargo what is no package of ours.
const BUILDER: (&str, &str) = ("FENCELOCK_BUILDER", "scripts/cargo.sh");

/// The compiler of a package comes after the tests of others, which have leases to keep. Cargo does not build anything anew for it.
const COMPILER: (&str, &str) = ("RUSTC_WRAPPER", "nice");

pub(crate) struct Runner {
    pub site: Site,
    pub machine: Machine,
    /// The programs of all tests; without them no part has tests.
    pub built: Result<Built, String>,
    /// How many times as slow as where the budgets come from the machine is.
    pub slower: f64,
    pub others: Others,
    /// Whether scripts may install something.
    pub install: bool,
    /// Set when the user wants an end.
    pub interrupted: Arc<AtomicBool>,
}

enum End {
    Failed(String),
    Lacking(String),
}

/// A part under way, or one of several lists of its steps.
#[derive(Clone, Copy)]
struct Course<'a> {
    file: &'a File,
    /// Where that file is.
    log: &'a Path,
    limit: Instant,
    /// The processor time of what has ended, in milliseconds.
    used: &'a AtomicU64,
}

impl Runner {
    /// Runs a part to its end.
    pub(crate) fn run(&self, part: &Part) -> Report {
        let (begin, used) = (Instant::now(), AtomicU64::new(0));
        // A defect of this program must not leave the others without an end.
        let steps = AssertUnwindSafe(|| self.steps(part, begin, &used));
        let panicked = |_| Err(End::Failed("this program panicked".into()));
        let verdict = match catch_unwind(steps).unwrap_or_else(panicked) {
            Ok(words) => Verdict::Passed(words),
            Err(End::Failed(words)) => Verdict::Failed(words),
            Err(End::Lacking(words)) => Verdict::Skipped(words),
        };
        let used = Duration::from_millis(used.into_inner());
        Report { name: part.name, verdict, took: begin.elapsed(), used, budget: part.budget }
    }

    /// How many times as slow as where the budgets come from the machine is for us, beside what other programs do now.
    fn slowdown(&self) -> f64 {
        self.slower * self.others.slower()
    }

    /// The end of a part's log, and where the whole of it is.
    pub(crate) fn failure(&self, part: &Part) -> String {
        let log = self.log(part);
        let failures = tail::failures(&log);
        format!("{failures}{}\n        the whole log: {}", tail::lines(&log, 60), log.display())
    }

    fn log(&self, part: &Part) -> PathBuf {
        log(&self.site, part.name)
    }

    fn steps(&self, part: &Part, begin: Instant, used: &AtomicU64) -> Result<String, End> {
        let log = self.log(part);
        let file = create(&log).map_err(End::Failed)?;
        if self.interrupted.load(Ordering::Relaxed) {
            return Err(End::Failed(INTERRUPTED.into()));
        }
        for need in part.needs(&self.site).all {
            self.machine.has(need).map_err(End::Lacking)?;
        }
        if part.computes() {
            stand_back();
        }
        let most =
            if self.site.full { LIMIT_IN_FULL } else { LIMIT.mul_f64(self.slowdown().min(2.0)) };
        let limit = begin + most;
        let course = Course { file: &file, log: &log, limit, used };
        let words = self.list(part.steps(self.site.full), course)?;
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
    fn list(&self, list: &'static [Step], course: Course<'_>) -> Result<String, End> {
        list.iter().try_fold(String::new(), |_, step| self.step(step, course))
    }

    /// All lists at once, each with a log of its own, which is put behind the part's in the end.
    fn beside(&self, lists: &'static [&'static [Step]], course: Course<'_>) -> Result<String, End> {
        let failed = |error: std::io::Error| End::Failed(error.to_string());
        let run = |(number, list): (usize, &&'static [Step])| {
            let log = course.log.with_extension(format!("{number}.log"));
            let ended = File::create(&log)
                .map_err(failed)
                .and_then(|file| self.list(list, Course { file: &file, log: &log, ..course }));
            (log, ended)
        };
        let mut file = course.file;
        let ended: Vec<_> = std::thread::scope(|scope| {
            let lanes: Vec<_> =
                lists.iter().enumerate().map(|lane| scope.spawn(move || run(lane))).collect();
            lanes.into_iter().map(|lane| lane.join().expect("a lane does not panic")).collect()
        });
        let mut words = Ok(String::new());
        for (log, ended) in ended {
            file.write_all(&std::fs::read(&log).map_err(failed)?).map_err(failed)?;
            std::fs::remove_file(&log).map_err(failed)?;
            // One that failed says more than one that lacks something.
            words = match (words, ended) {
                (Err(End::Lacking(_)), Err(End::Failed(why))) => Err(End::Failed(why)),
                (words, ended) => words.and(ended),
            };
        }
        words
    }

    fn step(&self, step: &'static Step, course: Course<'_>) -> Result<String, End> {
        let log = course.log;
        let before = tail::length(log);
        let (mut command, expect): (_, &[&str]) = match step {
            Step::Beside(lists) => return self.beside(lists, course),
            Step::Check(check) => return self.check(*check, log),
            Step::Tests(Targets::Docs) => (cargo(&[build::TEST, &["--doc"]].concat()), &[]),
            Step::Tests(targets) => {
                self.tests(targets, &|_| {}, course)?;
                return ran(log, before);
            }
            Step::Build(_) => return self.built().map(|_| String::new()),
            Step::Test(name, words) | Step::Alone(name, words) => {
                let targets = Targets::Named(std::slice::from_ref(name));
                let say = |command: &mut Command| {
                    command.args(*words);
                };
                self.tests(&targets, &say, course)?;
                return ran(log, before);
            }
            Step::Door(language, _) => {
                let say = |command: &mut Command| {
                    command.arg(language);
                };
                self.tests(&Targets::Named(&["doors"]), &say, course)?;
                return ran(log, before);
            }
            Step::On(server, names, words) => {
                let program = self.site.target.join("servers").join(server.name).join("server");
                let say = |command: &mut Command| {
                    command.args(*words).args(server.left_out());
                    command.env(need::REDIS_SERVER, &program).env("FENCELOCK_TENTH", "1");
                };
                self.tests(&Targets::Named(names), &say, course)?;
                return ran(log, before);
            }
            Step::Cargo { args, env, expect } => {
                let mut command = cargo(args);
                command.envs(env.iter().copied());
                (command, expect)
            }
            Step::Program { name, args, .. } => {
                self.built()?;
                let mut command = Command::new(self.site.target.join("quick").join(name));
                command.args(*args);
                (command, &[])
            }
            Step::Script(path) | Step::Suite(path) => {
                let mut command = Command::new(self.site.root.join(path));
                if std::env::var_os(COMPILER.0).is_none() && cfg!(target_os = "linux") {
                    command.envs([COMPILER]);
                }
                (command, &[])
            }
        };
        let status = self.wait(&mut command, course)?;
        let last = tail::last_line(log);
        if !status.success() {
            let script = matches!(step, Step::Script(..) | Step::Suite(..));
            return Err(if script && status.code() == Some(LACKING) {
                End::Lacking(tail::brief(&last))
            } else {
                End::Failed(tail::complaint(log))
            });
        }
        if let Some(text) = expect.iter().find(|text| !last.contains(**text)) {
            return Err(End::Failed(format!("the last line lacks {text}: {}", tail::brief(&last))));
        }
        match step {
            Step::Suite(..) | Step::Tests(_) => ran(log, before),
            _ => Ok(tail::brief(&last)),
        }
    }

    fn check(&self, check: fn(&Site) -> Result<String, String>, log: &Path) -> Result<String, End> {
        check(&self.site).map_err(|words| {
            let first = words.lines().next().unwrap_or_default();
            let first = match words.lines().count() {
                0 | 1 => first.to_owned(),
                lines => format!("{first} (and {} more lines)", lines - 1),
            };
            let _ = std::fs::write(log, words);
            End::Failed(first)
        })
    }

    fn built(&self) -> Result<&Built, End> {
        self.built.as_ref().map_err(|why| End::Failed(why.clone()))
    }

    /// Runs the programs of these targets, each in the folder of its package, also behind one that failed.
    fn tests(
        &self,
        targets: &Targets,
        say: &dyn Fn(&mut Command),
        course: Course<'_>,
    ) -> Result<(), End> {
        let programs = self.built()?.of(targets).map_err(End::Failed)?;
        let (mut file, mut failed) = (course.file, false);
        for Program { name, file: program, package, .. } in programs {
            let _ = writeln!(file, "\n     Running {name} ({})", program.display());
            let mut command = Command::new(program);
            command.current_dir(package);
            say(&mut command);
            failed |= !self.wait(&mut command, course)?.success();
        }
        if failed { Err(End::Failed(tail::complaint(course.log))) } else { Ok(()) }
    }

    /// Runs a command to its end, its words going to the log.
    fn wait(&self, command: &mut Command, course: Course<'_>) -> Result<ExitStatus, End> {
        let Course { file, limit, used, .. } = course;
        let failed = |error: std::io::Error| End::Failed(error.to_string());
        forget_cargo(command);
        if command.get_current_dir().is_none() {
            command.current_dir(&self.site.root);
        }
        command
            .env(crate::INSIDE, std::process::id().to_string())
            .env("CARGO_TERM_COLOR", "never")
            .env("FENCELOCK_SLOWER", self.slowdown().to_string())
            .stdin(Stdio::null())
            .stdout(file.try_clone().map_err(failed)?)
            .stderr(file.try_clone().map_err(failed)?);
        if self.site.full {
            command.env("FENCELOCK_FULL", "1");
        } else {
            command.env(PROFILE.0, PROFILE.1);
            command.env(BUILDER.0, self.site.root.join(BUILDER.1));
        }
        if !self.install {
            command.env("FENCELOCK_NO_INSTALL", "1");
        }
        if self.site.strict {
            command.env("FENCELOCK_STRICT", "1");
        }
        let mut child = command.spawn().map_err(failed)?;
        loop {
            if has_ended(&child).map_err(failed)? {
                let spent = processor_time(child.id()).as_millis();
                used.fetch_add(u64::try_from(spent).unwrap_or_default(), Ordering::Relaxed);
                return child.wait().map_err(failed);
            }
            let interrupted = self.interrupted.load(Ordering::Relaxed);
            if interrupted || Instant::now() > limit {
                end_with_descendants(&mut child);
                let why = if interrupted { INTERRUPTED } else { "it took too long and was ended" };
                return Err(End::Failed(why.into()));
            }
            std::thread::sleep(LOOK);
        }
    }
}

/// Whether a process has ended, without waiting for it: it still tells what it used.
fn has_ended(child: &Child) -> std::io::Result<bool> {
    use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
    let id = WaitId::Pid(Pid::from_child(child));
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    Ok(waitid(id, options)?.is_some())
}

/// What this thread runs from now on takes what others leave of the processors: on a busy machine a test that computes takes
/// longer, and one that keeps a lease of a second does not lose it. Elsewhere than on Linux a priority is a process'.
fn stand_back() {
    #[cfg(target_os = "linux")]
    let _ = rustix::process::nice(19);
}

/// Where a part's words go.
pub(crate) fn log(site: &Site, name: &str) -> PathBuf {
    site.target.join("test-all").join(name).with_extension("log")
}

/// A log that is empty.
pub(crate) fn create(log: &Path) -> Result<File, String> {
    let made =
        std::fs::create_dir_all(log.parent().unwrap_or(log)).and_then(|()| File::create(log));
    made.map_err(|error| format!("cannot write {}: {error}", log.display()))
}

/// How many tests ran since the log had this length. None is a failure.
fn ran(log: &Path, since: usize) -> Result<String, End> {
    match tail::tests_run(log, since) {
        0 => Err(End::Failed("no test ran".into())),
        count => Ok(format!("{count} tests")),
    }
}

pub(crate) fn cargo(args: &[impl AsRef<OsStr>]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(args).env("CARGO_TERM_COLOR", "never");
    forget_cargo(&mut command);
    command
}

/// What cargo said to this program about itself is nothing to others: ring would be built anew for it.
pub(crate) fn forget_cargo(command: &mut Command) {
    for (name, _) in std::env::vars_os() {
        let own = ["CARGO_PKG_", "CARGO_MANIFEST_"];
        if own.iter().any(|own| name.to_string_lossy().starts_with(own)) {
            command.env_remove(name);
        }
    }
}
