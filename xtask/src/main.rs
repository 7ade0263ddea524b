//! The project's own commands: `cargo test-all` and `cargo lint`.

mod log;
mod machine;
mod parts;
mod run;
mod signals;

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use machine::Machine;
use parts::{LINT, PARTS, Part};
use run::{Report, Runner, Verdict};

const USAGE: &str = "\
usage: cargo test-all [--full] [--strict] [--no-install] [--list] [NAME]...
       cargo lint

  NAME          only the parts of these names, of either length
  --full        also the parts that take hours: faults, every store and package, other libraries, figures
  --strict      a part that is skipped counts as failed
  --no-install  install nothing: name what is missing, skip the parts that need it
  --list        the parts, and what each shows";

/// Set for everything that runs below `cargo test-all`: a second one inside only lists its parts.
const INSIDE: &str = "FENCELOCK_INSIDE_TEST_ALL";

#[expect(clippy::struct_excessive_bools, reason = "each is an option of the command line")]
#[derive(Default)]
struct Request {
    full: bool,
    strict: bool,
    no_install: bool,
    list: bool,
    names: Vec<String>,
}

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    let command = words.next().unwrap_or_default();
    let parts: &'static [Part] = if command == "lint" { LINT } else { PARTS };
    let request = match Request::read(words, parts) {
        Ok(request) if ["test-all", "lint"].contains(&&*command) => request,
        Ok(_) => return refuse("the commands are test-all and lint"),
        Err(complaint) => return refuse(&complaint),
    };
    if request.list || std::env::var_os(INSIDE).is_some() {
        for part in parts {
            let length = if part.full { "  (--full)" } else { "" };
            // Whoever reads may have read enough.
            let _ = writeln!(io::stdout(), "{:<16} {}{length}", part.name, part.shows);
        }
        return ExitCode::SUCCESS;
    }
    let lint = command == "lint";
    let named = |part: &Part| request.names.iter().any(|name| name == part.name);
    let of_length = |part: &Part| request.names.is_empty() && (lint || request.full || !part.full);
    run(&parts.iter().filter(|part| named(part) || of_length(part)).collect::<Vec<_>>(), &request)
}

fn refuse(complaint: &str) -> ExitCode {
    eprintln!("{complaint}\n\n{USAGE}");
    ExitCode::from(2)
}

impl Request {
    fn read(words: impl Iterator<Item = String>, parts: &[Part]) -> Result<Self, String> {
        let mut request = Self::default();
        for word in words {
            match &*word {
                "--full" => request.full = true,
                "--strict" => request.strict = true,
                "--no-install" => request.no_install = true,
                "--list" => request.list = true,
                name if parts.iter().any(|part| part.name == name) => request.names.push(word),
                _ if word.starts_with('-') => return Err(format!("there is no option `{word}`")),
                _ => return Err(format!("there is no part `{word}`; see --list")),
            }
        }
        Ok(request)
    }
}

fn run(parts: &[&'static Part], request: &Request) -> ExitCode {
    let begin = Instant::now();
    let interrupted = signals::catch();
    let root = root();
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or("target".into(), PathBuf::from);
    let needs = parts.iter().flat_map(|part| part.needs).copied().collect();
    let machine = Machine::prepare(&needs, !request.no_install);
    let &Request { strict, no_install, .. } = request;
    let runner = Runner { target: root.join(target), root, no_install, strict, interrupted };
    let mut reports: Vec<Report> = Vec::new();
    for (number, part) in parts.iter().enumerate() {
        let place = format!("[{:>2}/{}]", number + 1, parts.len());
        reports.push(runner.run(&place, part, &machine));
    }
    conclude(&reports, begin, request.strict)
}

/// The workspace this program was built from.
fn root() -> PathBuf {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..");
    root.canonicalize().unwrap_or(root)
}

/// Prints the logs' tails of what failed, the table, and one line of sums.
fn conclude(reports: &[Report], begin: Instant, strict: bool) -> ExitCode {
    for Report { part, verdict, log, .. } in reports {
        if let Verdict::Failed(why) = verdict {
            println!(
                "\n{} failed: {why}\n{}\n  the whole log: {}",
                part.name,
                log::tail(log, 60),
                log.display()
            );
        }
    }
    println!("\n{:<16} {:<8} {:>7}  {:>6}", "part", "result", "time", "tests");
    for Report { part, verdict, took, tests, .. } in reports {
        let tests = if *tests == 0 { String::new() } else { tests.to_string() };
        println!(
            "{:<16} {:<8} {:>5} s  {tests:>6}  {}",
            part.name,
            verdict.word(),
            took.as_secs(),
            verdict.why()
        );
    }
    println!("{:<16} {:<8} {:>5} s", "all", "", begin.elapsed().as_secs());
    let count = |word| reports.iter().filter(|report| report.verdict.word() == word).count();
    let (passed, failed, skipped) = (count("passed"), count("failed"), count("skipped"));
    println!("{passed} passed, {failed} failed, {skipped} skipped");
    if failed > 0 || strict && skipped > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

#[cfg(test)]
mod tests {
    use super::{PARTS, Request};

    #[test]
    fn no_two_parts_have_one_name() {
        let names: std::collections::BTreeSet<_> = PARTS.iter().map(|part| part.name).collect();
        assert_eq!(names.len(), PARTS.len());
    }

    #[test]
    fn the_nightly_workflow_runs_every_part_of_the_full_length() {
        let workflow = include_str!("../../.github/workflows/nightly.yml");
        let rows = workflow.lines().filter_map(|line| line.trim().strip_prefix("- "));
        let words: Vec<&str> = rows.flat_map(str::split_whitespace).collect();
        for part in PARTS.iter().filter(|part| part.full) {
            assert!(words.contains(&part.name), "{} is in no job", part.name);
        }
    }

    #[test]
    fn a_release_is_built_and_tried_on_every_platform_of_the_npm_package() {
        let workflow = include_str!("../../.github/workflows/release.yml");
        let manifest = include_str!("../../bindings-node/package.json");
        let targets =
            manifest.split_once("\"targets\": [").and_then(|(_, rest)| rest.split_once(']'));
        let targets: Vec<&str> = targets.unwrap().0.split('"').skip(1).step_by(2).collect();
        assert_eq!(targets.len(), 8);
        for target in targets {
            let jobs = workflow.matches(&format!("platform: {target}")).count();
            assert_eq!(jobs, 3, "{target}: natives, wheel and smoke");
        }
    }

    #[test]
    fn the_version_is_the_same_wherever_it_stands() {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../scripts/version.sh");
        let checked = std::process::Command::new(script).arg("--check").output().unwrap();
        assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stdout));
    }

    fn read(words: &[&str]) -> Result<Request, String> {
        Request::read(words.iter().map(|word| (*word).to_owned()), PARTS)
    }

    #[test]
    fn words_are_parts_or_options() {
        let request = read(&["--full", "redis"]).unwrap();
        assert!(request.full && !request.strict && request.names == ["redis"]);
        assert!(read(&["--fast"]).is_err_and(|why| why.contains("--fast")));
        assert!(read(&["mongo"]).is_err_and(|why| why.contains("mongo")));
    }
}
